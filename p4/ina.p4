// In-network aggregation for v1model: one program for every method, chosen by table entries.
//
// A switch sums the gradients of an aggregation tree's children in a slot and sends the sum on
// under its own label. What is summed where, and where every label goes, is table entries; the
// packet format is the header `ina_t` below and nothing else (endpoints and dissectors read it
// from the compiled program).

#include <core.p4>
#include <v1model.p4>

#include "values.p4"

// ---- sizes and constants ----------------------------------------------------------------------

#define PIPELINES 8
#define SLOTS_PER_PIPELINE_LOG2 9
#define SLOTS_PER_PIPELINE (1 << SLOTS_PER_PIPELINE_LOG2)
#define SLOTS (PIPELINES << SLOTS_PER_PIPELINE_LOG2)
#define PORTS 512
#define VALUE_BYTES 256

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<16> INA_UDP_PORT = 0x494e;

// ECN in the IP header (RFC 3168): who sends it heeds marks; it has met with a long queue
const bit<8> ECN_CAPABLE = 2;
const bit<8> ECN_CONGESTED = 3;

const bit<8> KIND_GRADIENT = 1;
const bit<8> KIND_RESULT = 2;
const bit<8> KIND_NOTICE = 3;
const bit<8> KIND_QUESTION = 4;  // a child misses a result

const bit<8> FLAG_ECN = 0x01;        // it, or a packet that is summed in it, met with a long queue
const bit<8> FLAG_COLLISION = 0x02;
const bit<8> FLAG_OVERFLOW = 0x04;   // an element's sum left the range of int<32>
const bit<8> FLAG_PARTIAL = 0x08;    // of a notice: a sum lacks the fragment, which is to be sent again
const bit<8> FLAG_RETRANSMITTED = 0x10;
const bit<8> FLAG_DIRECT = 0x20;     // to the PS by its address, past all aggregators

// What an aggregator does with its slots, by the entry of each of its children.
const bit<8> POLICY_ROOT = 0x01;    // its sum is the result, and goes to all workers
const bit<8> POLICY_HOLD = 0x02;    // what comes again is summed as well: no partial sum ever leaves
const bit<8> POLICY_SHADOW = 0x04;  // a finished sum stays in its slot for those who ask again
const bit<8> POLICY_EVICT = 0x08;   // a fragment of higher priority takes a busy slot
const bit<8> POLICY_NOTIFY = 0x10;  // a fragment that finds its slot busy goes back as a notice with ECN
const bit<8> POLICY_REPAIR = 0x20;  // children are asked for what they lost, and results stay in slots for those who
                                    // miss them
const bit<8> SLOT_RESULT = 0x80;    // of a slot's marks: what it holds is the result

// A packet names the two that its sender has sent before it: what is missing of them was lost, and the sender is asked for
// it. As a question and its answer can be lost too, with each packet an older one is looked at, as far back as repairs
// below it take, in parts of the reach, by this power of two.
#define LOOK_BACK 5
const bit<32> SENT_BEFORE = 0x8000;

// How a packet that leaves finds its port or ports.
const bit<2> WAY_NONE = 0;
const bit<2> WAY_LABEL = 1;    // towards the root: by job, tree and label
const bit<2> WAY_TREE = 2;     // to every worker: by job and tree
const bit<2> WAY_ADDRESS = 3;  // to one host: by IPv4 address

// Index of each outcome in the counter `events`. Every packet a switch receives ends in exactly
// one of the outcomes up to SENT_MULTICAST, or as LOST or HELD; the rest say what happened on the
// way there.
const bit<32> EVENT_MALFORMED = 0;   // neither INA nor routable IPv4: dropped
const bit<32> EVENT_REJECTED = 1;    // not admitted, or slot out of range: dropped
const bit<32> EVENT_UNROUTABLE = 2;  // no entry says where it goes: dropped
const bit<32> EVENT_ABSORBED = 3;    // its values are in a slot that still waits for others
const bit<32> EVENT_DUPLICATE = 4;   // its child is in the slot already, or nobody waits for it: dropped
const bit<32> EVENT_SENT_UNICAST = 5;
const bit<32> EVENT_SENT_MULTICAST = 6;
const bit<32> EVENT_ADDED = 7;       // values claimed a slot or were added to one
const bit<32> EVENT_COMPLETED = 8;   // a full sum left under the aggregator's label
const bit<32> EVENT_FLUSHED = 9;     // a partial sum left because a child retransmitted
const bit<32> EVENT_COLLISION = 10;  // the slot was busy: forwarded unaggregated
const bit<32> EVENT_RECLAIMED = 11;  // a newer fragment of the same tree took a stale slot
const bit<32> EVENT_EVICTED = 12;    // a fragment of higher priority took the slot; its partial sum left
const bit<32> EVENT_NOTIFIED = 13;   // sent back as a notice: the slot was busy, or the child has lost an earlier fragment
const bit<32> EVENT_ANSWERED = 14;   // a finished sum left once more because a child retransmitted
const bit<32> EVENT_RELEASED = 15;   // the result came by: what the slot held of it was not waited for any more, or gave way
const bit<32> EVENT_LOST = 16;       // a fault on demand: dropped on arrival
const bit<32> EVENT_HELD = 17;       // a fault on demand: kept at its port
const bit<32> EVENT_OVERTAKEN = 18;  // a fault on demand: kept, and the one kept before went on instead
const bit<32> EVENT_DOUBLED = 19;    // a fault on demand: it leaves by some port twice
#define EVENTS 20

// ---- headers ----------------------------------------------------------------------------------

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ethertype;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> ip_flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;  // 0: the sums change in the network
}

header ina_t {
    bit<8> kind;
    bit<8> flags;
    bit<16> job;
    bit<16> tree;
    bit<16> label;    // whom the packet stands for in the tree: the root (0), a worker or an aggregator
    bit<32> seq;      // fragment, counted over all iterations
    bit<32> slot;     // counted from the first slot of the tree in each aggregator
    bit<64> bitmap;   // of the label's children, where the sum is partial. Else, where losses are repaired, from its end
                      // - the IPv4 address of the worker whom to ask for what is missing (32 bits); of what is sent
                      //   again the label of who asked, plus 1
                      // - how many fragments ago the last but one that its sender has sent is (16 bits), and the last
                      //   (16 bits), each plus 2^15; 0: it has sent none. Of results too
                      // Of a notice: how many fragments later one is to be sent again too (32 bits), and how many
                      // earlier (32 bits)
    bit<16> workers;  // summed in it
    bit<8> priority;
    bit<8> part;      // of a result wider than 32 bits: 0 low words (or all there is), 1 high words
}

header values_t {
    EACH_VALUE(VALUE_FIELD)
}

struct headers_t {
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    ina_t ina;
    values_t values;
}

#include "faults.p4"
#include "marks.p4"

struct metadata_t {
    faults_t fault;
    marks_t mark;
    bit<8> pipeline;
    bit<1> admitted;
    bit<2> way;
    // from the entry of the aggregator
    bit<64> child;        // this label's bits; 0: part of a child, never added
    bit<64> full;         // the bits of all children
    bit<32> first_slot;
    bit<32> slots;        // 0: not summed here
    bit<16> own_label;
    bit<32> window;       // a fragment so much newer says that all have the result of the older one
    bit<8> policy;
    // the slot
    bit<32> index;
    bit<32> owner;
    bit<32> slot_owner;
    bit<32> slot_seq;
    bit<64> slot_bitmap;
    bit<16> slot_workers;
    bit<16> slot_label;
    bit<8> slot_priority;
    bit<8> slot_marks;    // FLAG_ECN, if a packet had it that is summed in the slot
    bit<32> age;          // of the slot's fragment, in sequence numbers
    bit<32> overflow;     // bit 31: some element has overflown
    bit<1> matches;
    bit<1> is_free;
    bit<64> asked;        // the children that have asked for the slot's result
    bit<32> sent_before;  // as the packet says
    bit<32> lag;          // how far back a fragment is looked at
    bit<32> earlier;      // how many fragments before it another is missing
    bit<1> missing;       // its sum lacks the child
    bit<1> gives;         // the slot's result goes back to the child that misses it
    // scratch
    bit<32> before;
    bit<32> after;
    bit<48> mac;
    bit<32> address;
}

// ---- parser -----------------------------------------------------------------------------------

parser InaParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        // A later fragment has no UDP header, and options would move it.
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INA_UDP_PORT: ina;
            default: accept;
        }
    }
    state ina {
        packet.extract(hdr.ina);
        transition select(hdr.ina.kind) {
            KIND_GRADIENT: values;
            KIND_RESULT: values;
            default: accept;
        }
    }
    state values {
        packet.extract(hdr.values);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }

// ---- ingress ----------------------------------------------------------------------------------

control InaIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(EVENTS, CounterType.packets) events;
    counter(PORTS, CounterType.packets_and_bytes) received;
    counter(PORTS, CounterType.packets) rejected;  // those of `received` that EVENT_REJECTED counts

    register<bit<32>>(SLOTS) slot_owner;   // job and tree
    register<bit<32>>(SLOTS) slot_seq;
    register<bit<64>>(SLOTS) slot_bitmap;  // 0: the slot is free
    register<bit<16>>(SLOTS) slot_workers;
    register<bit<16>>(SLOTS) slot_label;   // of the aggregator that owns what the slot holds
    register<bit<8>>(SLOTS) slot_priority;
    register<bit<8>>(SLOTS) slot_marks;
    register<bit<32>>(SLOTS) slot_overflow;
    register<bit<64>>(SLOTS) slot_asked;
    register<bit<32>>(SLOTS) slot_first;   // the address of the worker that came first
    register<bit<64>>(SLOTS) last_sums;    // of a tree, at its first slot: the last two that left, each its sequence
                                           // number plus 1
    EACH_VALUE(VALUE_REGISTER)

    // -- where packets may come from

    action set_pipeline(bit<8> number) { meta.pipeline = number; }
    table pipeline {
        key = { standard.ingress_port: exact; }
        actions = { set_pipeline; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    action admit() { meta.admitted = 1; }
    table admission {
        key = {
            standard.ingress_port: exact;
            hdr.ina.kind: exact;
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { admit; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    // -- where they are summed

    action aggregate(bit<64> child, bit<64> full, bit<32> first_slot, bit<32> slots,
                     bit<16> own_label, bit<32> window, bit<8> policy) {
        meta.child = child;
        meta.full = full;
        meta.first_slot = first_slot;
        meta.slots = slots;
        meta.own_label = own_label;
        meta.window = window;
        meta.policy = policy;
    }
    table aggregation {
        key = {
            meta.pipeline: exact;
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { aggregate; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    // -- where they go

    action send(bit<9> port) { standard.egress_spec = port; }
    table forward {
        key = {
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 65536;
    }
    table ipv4_route {
        key = { hdr.ipv4.dst: exact; }
        actions = { send; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    action replicate(bit<16> group) { standard.mcast_grp = group; }
    table results {
        key = {
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
        }
        actions = { replicate; NoAction; }
        default_action = NoAction();
        size = 65536;
    }

    action drop(bit<32> event) {
        events.count(event);
        mark_to_drop(standard);
    }
    action reject() {
        rejected.count((bit<32>)standard.ingress_port);
        drop(EVENT_REJECTED);
    }

    // -- faults on demand

    Arrival() arrival;
    Doubling() doubling;

    // -- the slot

    action locate() {
        // The pipeline is the upper part of the index: no entry reaches another pipeline's slots.
        meta.index = ((bit<32>)meta.pipeline << SLOTS_PER_PIPELINE_LOG2)
            | ((meta.first_slot + hdr.ina.slot) & (SLOTS_PER_PIPELINE - 1));
        meta.owner = hdr.ina.job ++ hdr.ina.tree;
        slot_owner.read(meta.slot_owner, meta.index);
        slot_seq.read(meta.slot_seq, meta.index);
        slot_bitmap.read(meta.slot_bitmap, meta.index);
        slot_workers.read(meta.slot_workers, meta.index);
        slot_label.read(meta.slot_label, meta.index);
        slot_priority.read(meta.slot_priority, meta.index);
        slot_marks.read(meta.slot_marks, meta.index);
        slot_overflow.read(meta.overflow, meta.index);
        meta.age = hdr.ina.seq - meta.slot_seq;
        meta.matches = (bit<1>)(meta.slot_bitmap != 0 && meta.slot_owner == meta.owner
            && meta.age == 0);
        // A sender starts a fragment only after that of a window before has come back to it, so that
        // what a slot still holds of that one is not waited for.
        meta.is_free = (bit<1>)(meta.slot_bitmap == 0 || (meta.slot_owner == meta.owner
            && meta.age[31:31] == 0 && meta.age >= meta.window));
    }
    action take() {
        events.count(EVENT_ADDED);
        slot_owner.write(meta.index, meta.owner);
        slot_seq.write(meta.index, hdr.ina.seq);
        slot_label.write(meta.index, meta.own_label);
        slot_priority.write(meta.index, hdr.ina.priority);
    }
    action claim() {
        take();
        meta.slot_bitmap = meta.child;
        meta.slot_workers = hdr.ina.workers;
        meta.slot_marks = hdr.ina.flags & FLAG_ECN;
        meta.overflow = 0;
        EACH_VALUE(VALUE_STORE)
    }
    action claim_to_repair() {
        slot_asked.write(meta.index, 0);
        slot_first.write(meta.index, (hdr.ina.flags & FLAG_RETRANSMITTED) == 0 ? hdr.ina.bitmap[31:0] : 0);
    }
    action add() {
        events.count(EVENT_ADDED);
        meta.slot_bitmap = meta.slot_bitmap | meta.child;
        meta.slot_workers = meta.slot_workers + hdr.ina.workers;
        meta.slot_marks = meta.slot_marks | (hdr.ina.flags & FLAG_ECN);
        EACH_VALUE(VALUE_ADD)
    }
    action load() {
        EACH_VALUE(VALUE_LOAD)
    }
    action save() {
        slot_bitmap.write(meta.index, meta.slot_bitmap);
        slot_workers.write(meta.index, meta.slot_workers);
        slot_marks.write(meta.index, meta.slot_marks);
        slot_overflow.write(meta.index, meta.overflow);
    }
    action free() { slot_bitmap.write(meta.index, 0); }
    // The result takes the place of the sum.
    action keep() {
        events.count(EVENT_RELEASED);
        meta.slot_bitmap = meta.full;
        meta.slot_workers = hdr.ina.workers;
        meta.slot_marks = (hdr.ina.flags & FLAG_ECN) | SLOT_RESULT;
        meta.overflow = 0;
        EACH_VALUE(VALUE_STORE)
    }
    // A fragment that is less than the slots before or after the packet's.
    action look_back() {
        meta.before = hdr.ina.slot + meta.slots - meta.lag;
        meta.before = meta.before >= meta.slots ? meta.before - meta.slots : meta.before;
        meta.before = meta.before >= meta.slots ? meta.before - meta.slots : meta.before;
        meta.after = ((bit<32>)meta.pipeline << SLOTS_PER_PIPELINE_LOG2)
            | ((meta.first_slot + meta.before) & (SLOTS_PER_PIPELINE - 1));
        slot_seq.read(meta.age, meta.after);
        slot_bitmap.read(meta.asked, meta.after);  // scratch
        meta.age = hdr.ina.seq - meta.lag - meta.age;
        meta.missing = (bit<1>)((meta.age == 0 && (meta.asked & meta.child) != meta.child)
            || (meta.age != 0 && meta.age[31:31] == 0));
    }
    action reclaim() { events.count(EVENT_RECLAIMED); }
    action release() {
        events.count(EVENT_RELEASED);
        free();
    }

    // -- what leaves

    action pass() { meta.way = WAY_LABEL; }
    action collide() {
        events.count(EVENT_COLLISION);
        hdr.ina.flags = hdr.ina.flags | FLAG_COLLISION;
        // Whoever is in everybody's way does not stay there for ever.
        slot_priority.write(meta.index, meta.slot_priority >> 1);
        meta.way = WAY_LABEL;
    }
    // The slot's sum takes the packet's place.
    action become_sum() {
        hdr.ina.label = meta.own_label;
        hdr.ina.workers = meta.slot_workers;
        hdr.ina.flags = hdr.ina.flags | meta.slot_marks | ((bit<8>)(meta.overflow >> 31) << 2);
        meta.way = WAY_LABEL;
    }
    action become_complete() {
        events.count(EVENT_COMPLETED);
        hdr.ina.bitmap = 0;
    }
    action name_first() {
        slot_first.read(meta.address, meta.index);
        hdr.ina.bitmap = (bit<64>)meta.address;
        hdr.ina.flags = hdr.ina.flags & ~FLAG_RETRANSMITTED;  // the sum is sent for the first time
    }
    action name_sent_before() {
        bit<64> sent;
        meta.before = ((bit<32>)meta.pipeline << SLOTS_PER_PIPELINE_LOG2) | (meta.first_slot & (SLOTS_PER_PIPELINE - 1));
        last_sums.read(sent, meta.before);
        last_sums.write(meta.before, sent[31:0] ++ (hdr.ina.seq + 1));
        meta.before = hdr.ina.seq + 1 - sent[31:0];
        meta.before = sent[31:0] != 0 && meta.before + meta.slots < meta.slots << 1 ? meta.before + SENT_BEFORE : 0;
        meta.after = hdr.ina.seq + 1 - sent[63:32];
        meta.after = sent[63:32] != 0 && meta.after + meta.slots < meta.slots << 1 ? meta.after + SENT_BEFORE : 0;
        hdr.ina.bitmap = meta.before[15:0] ++ meta.after[15:0] ++ hdr.ina.bitmap[31:0];
    }
    action become_answer() {
        events.count(EVENT_ANSWERED);
    }
    action become_partial() {
        free();
        events.count(EVENT_FLUSHED);
        hdr.ina.bitmap = meta.slot_bitmap;
        hdr.ina.flags = hdr.ina.flags | FLAG_PARTIAL;
    }
    // A sum that left 32 bits is no result, but a notice to send its fragment to the PS.
    action become_result() {
        hdr.ina.kind = (hdr.ina.flags & FLAG_OVERFLOW) == 0 ? KIND_RESULT : KIND_NOTICE;
        hdr.ina.label = meta.own_label;
    }
    action reach_all() {
        hdr.ina.flags = hdr.ina.flags & (FLAG_OVERFLOW | FLAG_ECN);
        meta.way = WAY_TREE;
    }
    action turn_back() {
        meta.mac = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = meta.mac;
        // The checksum is the same for addresses that change places.
        meta.address = hdr.ipv4.dst;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = meta.address;
        hdr.ina.flags = hdr.ina.flags | FLAG_RETRANSMITTED;
        meta.way = WAY_ADDRESS;
    }
    action notify() {
        events.count(EVENT_NOTIFIED);
        hdr.ina.kind = KIND_NOTICE;
        hdr.ina.flags = FLAG_ECN;
        hdr.ina.label = 0;
        turn_back();
    }
    // The child has lost the fragment that was looked at. If the packet completes a sum, that is sent when its worker
    // repeats it, as the question says.
    action ask() {
        events.count(EVENT_NOTIFIED);
        bool names_first = (hdr.ina.flags & FLAG_RETRANSMITTED) == 0 && hdr.ina.bitmap[31:0] != 0;
        meta.address = names_first ? hdr.ina.bitmap[31:0] : hdr.ipv4.src;
        hdr.ina.kind = KIND_NOTICE;
        hdr.ina.flags = FLAG_PARTIAL;
        hdr.ina.label = 0;
        hdr.ina.seq = hdr.ina.seq - meta.lag;
        hdr.ina.slot = meta.before;
        hdr.ina.workers = meta.own_label;
        meta.after = meta.slot_bitmap == meta.full ? meta.lag : 0;
        hdr.ina.bitmap = meta.earlier ++ meta.after;
        // Who came first has the most time; RFC 1624
        meta.before = (bit<32>)~hdr.ipv4.checksum + (bit<32>)~hdr.ipv4.src[31:16] + (bit<32>)~hdr.ipv4.src[15:0]
            + (bit<32>)meta.address[31:16] + (bit<32>)meta.address[15:0];
        meta.before = (meta.before & 0xffff) + (meta.before >> 16);
        meta.before = (meta.before & 0xffff) + (meta.before >> 16);
        hdr.ipv4.checksum = ~meta.before[15:0];
        hdr.ipv4.src = meta.address;
        turn_back();
    }
    // The result goes back to the child that misses it: a worker by its address, or all below an aggregator.
    action give() {
        events.count(EVENT_ANSWERED);
        hdr.ina.kind = KIND_RESULT;
        hdr.ina.flags = meta.slot_marks & FLAG_ECN;
        hdr.ina.label = 0;
        hdr.ina.bitmap = 0;
    }
    // A question has no values; the answer has. RFC 1624
    action make_room() {
        hdr.values.setValid();
        hdr.ipv4.total_length = hdr.ipv4.total_length + VALUE_BYTES;
        hdr.udp.length = hdr.udp.length + VALUE_BYTES;
        meta.before = (bit<32>)~hdr.ipv4.checksum + VALUE_BYTES;
        hdr.ipv4.checksum = ~(meta.before[15:0] + (bit<16>)(meta.before >> 16));
    }
    // What a child asks about, it has to send first.
    action want() {
        hdr.ina.kind = KIND_NOTICE;
        hdr.ina.flags = FLAG_PARTIAL;
        hdr.ina.label = 0;
        hdr.ina.bitmap = 0;
        hdr.ina.workers = meta.own_label;
        turn_back();
    }
    action relay() {
        events.count(EVENT_ANSWERED);
        hdr.ina.label = meta.own_label;
        hdr.ina.workers = meta.slot_workers;
        meta.way = WAY_LABEL;
    }
    action give_below() {
        hdr.ina.workers = meta.slot_workers;
        events.count(EVENT_SENT_UNICAST);
        standard.egress_spec = standard.ingress_port;
    }
    action give_one() {
        hdr.ina.workers = meta.slot_workers;
        turn_back();
    }
    // The packet and what the slot holds change places. Its addresses stay: labels tell where it goes.
    action evict() {
        events.count(EVENT_EVICTED);
        take();
        EACH_VALUE(VALUE_SWAP)
        slot_bitmap.write(meta.index, meta.child);
        slot_workers.write(meta.index, hdr.ina.workers);
        slot_marks.write(meta.index, hdr.ina.flags & FLAG_ECN);
        slot_overflow.write(meta.index, 0);
        hdr.ina.flags = FLAG_PARTIAL | meta.slot_marks | ((bit<8>)(meta.overflow >> 31) << 2);
        hdr.ina.job = meta.slot_owner[31:16];
        hdr.ina.tree = meta.slot_owner[15:0];
        hdr.ina.label = meta.slot_label;
        hdr.ina.seq = meta.slot_seq;
        hdr.ina.bitmap = meta.slot_bitmap;
        hdr.ina.workers = meta.slot_workers;
        hdr.ina.priority = meta.slot_priority;
        meta.way = WAY_LABEL;
    }

    apply {
        meta.fault.port = (bit<32>)standard.ingress_port;
        received.count(meta.fault.port);
        arrival.apply(hdr, meta.fault, standard);
        if (meta.fault.gone == 1) {
            drop(meta.fault.event);
        } else if (standard.parser_error != error.NoError || !hdr.ipv4.isValid()) {
            drop(EVENT_MALFORMED);
        } else if (!hdr.ina.isValid()) {
            meta.way = WAY_ADDRESS;
        } else {
            pipeline.apply();
            bool asks = hdr.ina.kind == KIND_QUESTION;
            if (asks) {
                hdr.ina.kind = KIND_GRADIENT;  // whose gradients are admitted may ask
            }
            admission.apply();
            if (asks) {
                hdr.ina.kind = KIND_QUESTION;
            }
            if (meta.admitted == 0) {
                reject();
            } else {
                aggregation.apply();
                if (asks && meta.slots == 0) {
                    pass();
                } else if (asks && (hdr.ina.slot >= meta.slots || (meta.policy & POLICY_REPAIR) == 0)) {
                    reject();
                } else if (asks) {
                    locate();
                    slot_asked.read(meta.asked, meta.index);
                    bool done = meta.slot_bitmap == meta.full;
                    bool here = (meta.slot_marks & SLOT_RESULT) != 0 || (meta.policy & POLICY_ROOT) != 0;
                    bool known = meta.asked != 0 && (meta.asked & meta.child) == 0;
                    if (meta.matches == 1 && (meta.slot_bitmap & meta.child) == meta.child) {
                        if (done && here) {
                            meta.gives = 1;
                        } else if (done && !known) {
                            slot_asked.write(meta.index, meta.child);
                            relay();
                        } else {
                            if (done) {
                                slot_asked.write(meta.index, meta.asked | meta.child);
                            }
                            drop(EVENT_DUPLICATE);
                        }
                    } else if (meta.matches == 1 || meta.age[31:31] == 0) {
                        want();
                    } else {
                        drop(EVENT_DUPLICATE);
                    }
                } else if (hdr.ina.kind != KIND_GRADIENT) {
                    // From the root: to every worker along the tree, or again to one that asked.
                    meta.way = (hdr.ina.flags & FLAG_RETRANSMITTED) == 0 ? WAY_TREE : WAY_ADDRESS;
                    if (hdr.ina.kind == KIND_RESULT && hdr.ina.slot < meta.slots) {
                        locate();
                        if (meta.matches == 1 && (meta.policy & POLICY_REPAIR) == 0) {
                            release();
                        } else if (meta.matches == 1 && (hdr.ina.flags & FLAG_OVERFLOW) == 0
                                && (meta.slot_marks & SLOT_RESULT) == 0) {
                            keep();
                            save();
                        }
                    }
                } else if ((hdr.ina.flags & FLAG_DIRECT) != 0) {
                    meta.way = WAY_ADDRESS;
                } else if ((hdr.ina.flags & FLAG_OVERFLOW) != 0 && (meta.policy & POLICY_ROOT) != 0) {
                    become_result();
                    reach_all();
                } else if (meta.slots == 0 || (hdr.ina.flags & (FLAG_PARTIAL | FLAG_OVERFLOW)) != 0) {
                    pass();
                } else if (hdr.ina.slot >= meta.slots) {
                    reject();
                } else {
                    locate();
                    if ((meta.policy & POLICY_REPAIR) != 0) {
                        meta.sent_before = hdr.ina.bitmap[63:32];
                        hdr.ina.bitmap = (bit<64>)hdr.ina.bitmap[31:0];
                    }
                    // What is sent again does not wait in a slot, if there is a PS to turn to.
                    bool hurries = (hdr.ina.flags & FLAG_RETRANSMITTED) != 0 && (meta.policy & POLICY_HOLD) == 0;
                    if (meta.matches == 1 && (meta.slot_bitmap & meta.child) == meta.child) {
                        // Nothing to add. Who sends again misses the sum: let it go.
                        bool finished = (hdr.ina.flags & FLAG_RETRANSMITTED) != 0 && meta.slot_bitmap == meta.full;
                        bool known = false;
                        if (finished && (meta.policy & POLICY_REPAIR) != 0 && hdr.ina.bitmap == 0) {
                            slot_asked.read(meta.asked, meta.index);
                            known = (meta.policy & POLICY_ROOT) == 0 && meta.asked != 0 && meta.child != 0
                                && (meta.asked & meta.child) == 0;
                            slot_asked.write(meta.index, known ? meta.asked | meta.child : meta.child);
                        }
                        bool repairs = finished && (meta.policy & POLICY_REPAIR) != 0 && hdr.ina.bitmap != 0;
                        bool asked_here = hdr.ina.bitmap == (bit<64>)meta.own_label + 1;
                        if (repairs && (asked_here || (meta.slot_marks & SLOT_RESULT) != 0)) {
                            drop(EVENT_DUPLICATE);
                        } else if (finished && (meta.slot_marks & SLOT_RESULT) != 0) {
                            meta.gives = 1;
                        } else if (known) {
                            drop(EVENT_DUPLICATE);  // another child has asked for the result, which will come to all
                        } else if (finished || hurries) {
                            load();
                            become_sum();
                            if (finished) {
                                become_answer();
                                if ((meta.policy & POLICY_REPAIR) != 0 && (meta.policy & POLICY_ROOT) == 0) {
                                    name_sent_before();
                                }
                                if ((meta.policy & POLICY_ROOT) != 0) {
                                    become_result();
                                    turn_back();
                                }
                            } else {
                                become_partial();
                            }
                        } else if (meta.child == 0) {
                            pass();
                        } else {
                            drop(EVENT_DUPLICATE);
                        }
                    } else if (meta.matches == 0 && (hurries || meta.child == 0)) {
                        pass();
                    } else if (meta.matches == 1 && (meta.slot_bitmap & meta.child) != 0) {
                        collide();  // part of it is in the sum already
                    } else if (meta.matches == 0 && meta.is_free == 0) {
                        if ((meta.policy & POLICY_HOLD) != 0 && meta.age[31:31] == 1) {
                            // Nobody starts a newer fragment here before all have this one's result.
                            drop(EVENT_DUPLICATE);
                        } else if ((meta.policy & POLICY_NOTIFY) != 0) {
                            notify();
                        } else if ((meta.policy & POLICY_EVICT) != 0 && hdr.ina.priority > meta.slot_priority) {
                            evict();
                        } else {
                            collide();
                        }
                    } else {
                        if (meta.matches == 1) {
                            add();
                        } else {
                            if (meta.slot_bitmap != 0) {
                                reclaim();
                            }
                            claim();
                            if ((meta.policy & POLICY_REPAIR) != 0) {
                                claim_to_repair();
                            }
                        }
                        // What completes a result does not wait.
                        bool ends = (meta.policy & POLICY_ROOT) != 0 && meta.slot_bitmap == meta.full;
                        if ((meta.policy & POLICY_REPAIR) != 0 && !ends) {
                            bit<32> last = (bit<32>)meta.sent_before[31:16] - SENT_BEFORE;
                            bit<32> before = (bit<32>)meta.sent_before[15:0] - SENT_BEFORE;
                            meta.lag = last;
                            if (meta.sent_before[31:16] != 0 && last + meta.slots < meta.slots << 1) {
                                look_back();
                            }
                            if (meta.missing == 1) {
                                if (meta.sent_before[15:0] != 0 && before + meta.slots < meta.slots << 1) {
                                    meta.lag = before;
                                    look_back();
                                    meta.earlier = meta.missing == 1 ? before - last : 0;
                                    meta.lag = last;
                                    look_back();
                                }
                            } else if ((hdr.ina.flags & FLAG_RETRANSMITTED) == 0) {
                                meta.lag = ((meta.window >> LOOK_BACK) + 1) * (2 + (bit<32>)(meta.policy >> 6));
                                if (meta.lag < meta.slots) {
                                    look_back();
                                }
                            }
                        }
                        if (meta.missing == 1) {
                            save();
                            ask();
                        } else if (meta.slot_bitmap != meta.full && !hurries) {
                            save();
                            drop(EVENT_ABSORBED);
                        } else {
                            become_sum();
                            if (meta.slot_bitmap != meta.full) {
                                become_partial();
                            } else {
                                become_complete();
                                if ((meta.policy & POLICY_REPAIR) != 0) {
                                    name_first();
                                    name_sent_before();
                                }
                                if ((meta.policy & POLICY_ROOT) != 0) {
                                    become_result();
                                    reach_all();
                                }
                                if ((meta.policy & POLICY_SHADOW) != 0) {
                                    save();
                                } else {
                                    free();
                                }
                            }
                        }
                    }
                }
            }
        }

        if (meta.gives == 1) {
            if (!hdr.values.isValid()) {
                make_room();
            }
            load();
            give();
            if (hdr.ina.workers == 1) {
                give_one();
            } else {
                give_below();
            }
        }
        if (meta.way == WAY_ADDRESS) {
            if (ipv4_route.apply().hit) {
                events.count(EVENT_SENT_UNICAST);
            } else {
                drop(EVENT_UNROUTABLE);
            }
        } else if (meta.way == WAY_LABEL) {
            if (forward.apply().hit) {
                events.count(EVENT_SENT_UNICAST);
            } else {
                drop(EVENT_UNROUTABLE);
            }
        } else if (meta.way == WAY_TREE) {
            if (results.apply().hit) {
                events.count(EVENT_SENT_MULTICAST);
            } else {
                drop(EVENT_UNROUTABLE);
            }
        }

        if (meta.fault.possible == 1) {
            if (meta.fault.overtaken == 1) {
                events.count(EVENT_OVERTAKEN);
            }
            doubling.apply(meta.fault, standard);
            if (meta.fault.doubled == 1) {
                events.count(EVENT_DOUBLED);
            }
        }
    }
}

// ---- egress -----------------------------------------------------------------------------------

control InaEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(PORTS, CounterType.packets_and_bytes) sent;
    counter(PORTS, CounterType.packets) replicated;  // copies of a multicast, of `sent` and `lost`
    counter(PORTS, CounterType.packets) lost;        // a fault on demand: dropped instead of sent

    Departure() departure;
    Marks() marks;

    apply {
        meta.fault.port = (bit<32>)standard.egress_port;
        departure.apply(hdr, meta.fault, standard);
        if (meta.fault.gone == 1) {
            lost.count(meta.fault.port);
            mark_to_drop(standard);
        } else {
            sent.count(meta.fault.port);
            marks.apply(hdr, meta.mark, standard);
        }
        if (standard.egress_rid != 0) {
            replicated.count(meta.fault.port);
        }
    }
}

control InaDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.ina);
        packet.emit(hdr.values);
    }
}

V1Switch(InaParser(), NoVerify(), InaIngress(), InaEgress(), NoUpdate(), InaDeparser()) main;
