// The registers of the slots, and all that is ever done to them: each in one cell, once a packet.
//
// `REGISTER` and `READ_MODIFY_WRITE` are the shell's. The latter makes an action that finds `value` in the cell of
// the packet's slot, leaves there what `value` is then, and puts `result` into a field. A chip does each in one
// stateful ALU: at most two comparisons, and one new value for each of their outcomes.

REGISTER(slot_owner, bit<32>)    // job and tree; 0: the slot is free
REGISTER(slot_seq, bit<32>)      // the fragment
REGISTER(slot_bitmap, bit<32>)   // of the children in the sum
REGISTER(slot_seen, bit<32>)     // the same: a register answers one question per packet
REGISTER(slot_marks, bit<32>)    // FLAG_ECN, if a packet had it that is in the sum

// A free slot becomes the tree's.
#define CLAIM result = value; if (value == 0) { value = meta.owner; }
READ_MODIFY_WRITE(slot_owner, claim, bit<32>, meta.owner_before, CLAIM)
#define LOOK result = value;
READ_MODIFY_WRITE(slot_owner, look, bit<32>, meta.owner_before, LOOK)
// A slot of the tree becomes free.
#define RELEASE result = value; if (value == meta.owner) { value = 0; }
READ_MODIFY_WRITE(slot_owner, release, bit<32>, meta.owner_before, RELEASE)

// What a slot that was free holds now.
#define BEGIN value = hdr.ina.seq; result = SLOT_FRESH;
READ_MODIFY_WRITE(slot_seq, begin, bit<8>, meta.held, BEGIN)
// A sender starts a fragment only after that of a window before has come back to it, so that what a slot still
// holds of that one is not waited for.
#define ADVANCE \
    result = SLOT_BUSY; \
    if (value == hdr.ina.seq) { result = SLOT_MINE; } \
    else if ((int<32>)(value - meta.oldest) <= 0) { value = hdr.ina.seq; result = SLOT_FRESH; }
READ_MODIFY_WRITE(slot_seq, advance, bit<8>, meta.held, ADVANCE)
#define FIND result = SLOT_BUSY; if (value == hdr.ina.seq) { result = SLOT_MINE; }
READ_MODIFY_WRITE(slot_seq, find, bit<8>, meta.held, FIND)

#define SET_BITS value = meta.child; result = value;
READ_MODIFY_WRITE(slot_bitmap, set_bits, bit<32>, meta.after, SET_BITS)
#define JOIN_BITS value = value | meta.child; result = value;
READ_MODIFY_WRITE(slot_bitmap, join_bits, bit<32>, meta.after, JOIN_BITS)
#define SET_SEEN value = meta.child; result = 0;
READ_MODIFY_WRITE(slot_seen, set_seen, bit<32>, meta.seen, SET_SEEN)
#define JOIN_SEEN result = value & meta.child; value = value | meta.child;
READ_MODIFY_WRITE(slot_seen, join_seen, bit<32>, meta.seen, JOIN_SEEN)

#define SET_MARKS value = (bit<32>)(hdr.ina.flags & FLAG_ECN); result = value;
READ_MODIFY_WRITE(slot_marks, set_marks, bit<32>, meta.marks, SET_MARKS)
#define JOIN_MARKS value = value | (bit<32>)(hdr.ina.flags & FLAG_ECN); result = value;
READ_MODIFY_WRITE(slot_marks, join_marks, bit<32>, meta.marks, JOIN_MARKS)

#define STORE(i) value = hdr.values.v##i; result = value;
// A sum that leaves the range of int<32> stays at that end of it, whatever else is added.
#define ADD(i) ADD_TO_THE_END(hdr.values.v##i) result = value;
EACH_VALUE(VALUE_REGISTER)
