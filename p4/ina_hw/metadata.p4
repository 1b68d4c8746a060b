// What a packet knows of itself on its way through the ingress. `METADATA_BESIDE` is the shell's.

// What it asks of a slot.
const bit<2> ASK_NOTHING = 0;
const bit<2> ASK_JOIN = 1;     // to be summed
const bit<2> ASK_FIND = 2;     // to be summed if its fragment is there already
const bit<2> ASK_RELEASE = 3;  // to free the slot: it is the result

// What it finds there.
const bit<8> SLOT_BUSY = 0;   // another fragment
const bit<8> SLOT_MINE = 1;   // its fragment
const bit<8> SLOT_FRESH = 2;  // its fragment from now on: nothing was there, or nothing that is waited for

#define LARGEST 32w0x7fffffff
#define SMALLEST 32w0x80000000

struct metadata_t {
    bit<8> second;        // it has been here before, for the first half of its values
    bit<1> admitted;
    bit<2> way;
    // from the entry of the aggregator
    bit<32> child;        // this label's bit; 0: part of a child, never added
    bit<32> full;         // the bits of all children
    slot_t slot;
    bit<32> room;         // slots of the tree from this one on; 0: not summed here
    bit<16> own_label;
    bit<32> window;
    bit<32> oldest;       // the newest fragment that nobody waits for any more
    bit<8> policy;
    bit<32> owner;
    // the slot
    slot_t index;
    bit<2> asked;
    bit<32> owner_before;
    bit<8> held;
    bit<32> after;        // the children in the sum with this packet's
    bit<32> seen;         // the packet's child if it was in the sum before
    bit<32> marks;
    // what becomes of the packet
    bit<8> again;
    bit<8> summed;
    bit<8> is_new;
    bit<1> reclaimed;
    event_t outcome;
    event_t happened;
    // in the egress
    bit<1> at_end;        // some value is at an end of int<32>
    METADATA_BESIDE
}
