// `ina_hw` for TNA: the program that the compiler of Tofino 1 and 2 judges.
//
// Each pipeline has registers of its own, so that no index names a pipeline; a second pass comes in by the
// pipeline's own recirculation port. There are no faults on demand, and each packet is counted once in each of
// three counters. Define TOFINO2 for that chip, and VALUES_PER_PASS, 32 or 64.

#include <core.p4>
#ifdef TOFINO2
#include <t2na.p4>
#define RECIRCULATION_PORT 7w6
#else
#include <tna.p4>
#define RECIRCULATION_PORT 7w68
#endif

#ifndef VALUES_PER_PASS
#define VALUES_PER_PASS 32
#endif
#include "values.p4"

#ifndef SLOTS_PER_PIPELINE_LOG2
#define SLOTS_PER_PIPELINE_LOG2 14
#endif
#define PASSES (64 / VALUES_PER_PASS)
#ifndef TABLE_SIZE
#define TABLE_SIZE 16384
#endif
#define PORTS 512

typedef bit<16> slot_t;
typedef bit<8> event_t;

#define HEADERS_BESIDE
#define VALUES_BESIDE
#define METADATA_BESIDE
#define PASS standard.ingress_port[6:0]
#define SECOND_PASS RECIRCULATION_PORT
#include "protocol.p4"
#include "metadata.p4"

parser InaIngressParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                        out ingress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        packet.advance(PORT_METADATA_SIZE);
        meta.second = 0;
        meta.admitted = 0;
        meta.way = WAY_NONE;
        meta.child = 0;
        meta.room = 0;
        meta.policy = 0;
        meta.asked = ASK_NOTHING;
        meta.held = SLOT_BUSY;
        meta.after = 0;
        meta.seen = 0;
        meta.again = 0;
        meta.summed = 0;
        meta.is_new = 0;
        meta.reclaimed = 0;
        meta.outcome = 0;
        meta.happened = 0;
        transition select(standard.ingress_port[6:0]) {
            RECIRCULATION_PORT: carried;
            default: ethernet;
        }
    }
    state carried {
        packet.extract(hdr.carried);
        meta.second = 1;
        meta.admitted = 1;
        transition ethernet;
    }
    #include "parser.p4"
    #include "values_parser.p4"
}

// A cell of a register; each of two passes has slots of its own.
typedef bit<(SLOTS_PER_PIPELINE_LOG2 + 1)> cell_t;
#define REGISTER(name, type) Register<type, cell_t>(PASSES << SLOTS_PER_PIPELINE_LOG2) name;
#define READ_MODIFY_WRITE(cells, name, type, destination, BODY) \
    RegisterAction<bit<32>, cell_t, type>(cells) name##_cell = { \
        void apply(inout bit<32> value, out type result) { BODY } \
    }; \
    action name() { destination = name##_cell.execute(CELL); }
#define CELL (meta.second[0:0] ++ meta.slot[SLOTS_PER_PIPELINE_LOG2 - 1:0])
#define ADD_TO_THE_END(operand) \
    if (value != LARGEST && value != SMALLEST) { \
        value = (bit<32>)((int<32>)value |+| (int<32>)operand); \
    }
#define VALUE_REGISTER(i) \
    REGISTER(sum##i, bit<32>) \
    READ_MODIFY_WRITE(sum##i, store_##i, bit<32>, hdr.values.v##i, STORE(i)) \
    READ_MODIFY_WRITE(sum##i, add_##i, bit<32>, hdr.values.v##i, ADD(i)) \
    READ_MODIFY_WRITE(sum##i, look_##i, bit<32>, hdr.values.v##i, LOOK) \
    table value_##i { \
        key = { meta.held: exact; meta.seen: ternary; } \
        actions = { store_##i; add_##i; look_##i; NoAction; } \
        const entries = { \
            (SLOT_FRESH, _): store_##i(); \
            (SLOT_MINE, 0): add_##i(); \
            (SLOT_MINE, _): look_##i(); \
        } \
        const default_action = NoAction(); \
        size = 4; \
    }
// A table for each value, which no other waits for: a branch over all of them would keep the stages between its first
// and its last value from everything else.
#define SUM_VALUE(i) value_##i.apply();
#define SUM_VALUES EACH_VALUE(SUM_VALUE)

#define INGRESS_PORT standard.ingress_port
#define EGRESS_PORT manager.ucast_egress_port
#define MULTICAST_GROUP manager.mcast_grp_a
#define PIPELINE standard.ingress_port[8:7]
#define DROP deparsing.drop_ctl = 1;
#define REJECT
#define LOCATE
#define BEFORE_INGRESS
#define IS_GONE !hdr.ipv4.isValid()
#define GONE_BY EVENT_MALFORMED
#define RECIRCULATE recirculate();
#define AFTER_INGRESS \
    if (meta.again == 0) { \
        outcomes.count(meta.outcome); \
        happenings.count(meta.happened); \
        added.count(meta.is_new[0:0] ++ meta.reclaimed); \
    }

control InaIngress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t standard,
                   in ingress_intrinsic_metadata_from_parser_t parsing,
                   inout ingress_intrinsic_metadata_for_deparser_t deparsing,
                   inout ingress_intrinsic_metadata_for_tm_t manager) {
    Counter<bit<64>, event_t>(EVENTS, CounterType_t.PACKETS) outcomes;
    Counter<bit<64>, event_t>(EVENTS, CounterType_t.PACKETS) happenings;
    Counter<bit<64>, bit<2>>(4, CounterType_t.PACKETS) added;  // by whether it was new, and reclaimed its slot

    action recirculate() {
        manager.ucast_egress_port = standard.ingress_port[8:7] ++ RECIRCULATION_PORT;
        hdr.carried.overflow = 0;
    }

    #include "ingress.p4"
}

control InaIngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                           in ingress_intrinsic_metadata_for_deparser_t deparsing) {
    apply {
        packet.emit(hdr);
    }
}

struct egress_metadata_t {
    bit<1> at_end;
}

// Values are beyond the 160 bytes that the parser of a Tofino 1's egress can reach: nothing flags a sum that left
// the range of int<32> here. It stays at that end.
parser InaEgressParser(packet_in packet, out headers_t hdr, out egress_metadata_t meta,
                       out egress_intrinsic_metadata_t standard) {
    state start {
        packet.extract(standard);
        packet.extract(hdr.carried);
        meta.at_end = 0;
        transition ethernet;
    }
    #include "parser.p4"
    state half {
        transition accept;
    }
}

#define FIND_OVERFLOW
#define AFTER_EGRESS

control InaEgress(inout headers_t hdr, inout egress_metadata_t meta, in egress_intrinsic_metadata_t standard,
                  in egress_intrinsic_metadata_from_parser_t parsing,
                  inout egress_intrinsic_metadata_for_deparser_t deparsing,
                  inout egress_intrinsic_metadata_for_output_port_t sending) {
    #include "egress.p4"
}

control InaEgressDeparser(packet_out packet, inout headers_t hdr, in egress_metadata_t meta,
                          in egress_intrinsic_metadata_for_deparser_t deparsing) {
    apply {
        packet.emit(hdr);
    }
}

Pipeline(InaIngressParser(), InaIngress(), InaIngressDeparser(),
         InaEgressParser(), InaEgress(), InaEgressDeparser()) pipe;

Switch(pipe) main;
