// `ina_hw` for v1model: what a chip can do, run by BMv2, by target `fast` and in virtual time.
//
// Registers are arrays that an action reads and writes once, recirculation is BMv2's, and pipelines are the upper
// part of a slot's index. Faults on demand and the counters are those of `ina.p4`.

#include <core.p4>
#include <v1model.p4>

#ifndef VALUES_PER_PASS
#define VALUES_PER_PASS 32
#endif
#include "values.p4"

#define PIPELINES 8
#define SLOTS_PER_PIPELINE_LOG2 9
#define SLOTS_PER_PIPELINE (1 << SLOTS_PER_PIPELINE_LOG2)
#define SLOTS (PIPELINES << SLOTS_PER_PIPELINE_LOG2)
#define PASSES (64 / VALUES_PER_PASS)
#define PORTS 512
#define TABLE_SIZE 65536
#define RECIRCULATION_PORT 510

typedef bit<32> slot_t;
typedef bit<32> event_t;

// The values that are not of this pass are parsed only for faults on demand, which keep whole packets. One that ends
// within them is malformed: no fault happens to it.
#if VALUES_PER_PASS == 32
#define HEADERS_BESIDE values_t rest;
#define VALUES_BESIDE packet.extract(hdr.rest);
#define EMIT_BESIDE packet.emit(hdr.rest);
#define HELD_REST(X, i) X(32, rest##i, hdr.rest.v##i)
#define HELD_8(X, a, b, c, d, e, f, g, h) \
    HELD_REST(X, a) HELD_REST(X, b) HELD_REST(X, c) HELD_REST(X, d) \
    HELD_REST(X, e) HELD_REST(X, f) HELD_REST(X, g) HELD_REST(X, h)
#define HELD_BESIDE(X) \
    HELD_8(X, 0, 1, 2, 3, 4, 5, 6, 7) HELD_8(X, 8, 9, 10, 11, 12, 13, 14, 15) \
    HELD_8(X, 16, 17, 18, 19, 20, 21, 22, 23) HELD_8(X, 24, 25, 26, 27, 28, 29, 30, 31)
#else
#define HEADERS_BESIDE
#define VALUES_BESIDE
#define EMIT_BESIDE
#define HELD_BESIDE(X)
#endif

#include "protocol.p4"
#include "../faults.p4"
#include "../marks.p4"

#define METADATA_BESIDE \
    faults_t fault; \
    marks_t mark; \
    bit<1> gone; \
    bit<8> pipeline;
#include "metadata.p4"

const bit<32> RECIRCULATED = 4;
#define PASS standard.instance_type
#define SECOND_PASS RECIRCULATED

parser InaParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        transition select(standard.instance_type) {
            RECIRCULATED: carried;
            default: ethernet;
        }
    }
    state carried {
        packet.extract(hdr.carried);
        meta.second = 1;
        transition ethernet;
    }
    #include "parser.p4"
    #include "values_parser.p4"
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }

#define REGISTER(name, type) register<type>(PASSES * SLOTS) name;
#define READ_MODIFY_WRITE(cells, name, type, destination, BODY) \
    action name() { \
        bit<32> value; \
        type result; \
        cells.read(value, meta.index); \
        BODY \
        cells.write(meta.index, value); \
        destination = result; \
    }
// Without branches, of which 32 in a row are more than the kernel follows: 1 for a value at an end of int<32>, 0 for
// another; and the end on a value's side.
#define IS_END(value) (((value ^ (bit<32>)((int<32>)value >> 31)) + 1) >> 31)
#define END_OF(value) ((bit<32>)((int<32>)value >> 31) ^ LARGEST)
#define ADD_TO_THE_END(operand) \
    bit<32> sum = value + operand; \
    bit<32> stays = 0 - (IS_END(value) | (((value ^ sum) & (operand ^ sum)) >> 31)); \
    value = (sum & ~stays) | (END_OF(value) & stays);
#define VALUE_REGISTER(i) \
    REGISTER(sum##i, bit<32>) \
    READ_MODIFY_WRITE(sum##i, store_##i, bit<32>, hdr.values.v##i, STORE(i)) \
    READ_MODIFY_WRITE(sum##i, add_##i, bit<32>, hdr.values.v##i, ADD(i)) \
    READ_MODIFY_WRITE(sum##i, look_##i, bit<32>, hdr.values.v##i, LOOK)
#define SUM_STORE(i) store_##i();
#define SUM_ADD(i) add_##i();
#define SUM_LOOK(i) look_##i();
#define SUM(operation) EACH_VALUE(SUM_##operation)
#define SUM_VALUES \
    if (meta.held == SLOT_FRESH) { \
        SUM(STORE) \
    } else if (meta.held == SLOT_MINE && meta.seen == 0) { \
        SUM(ADD) \
    } else if (meta.held == SLOT_MINE) { \
        SUM(LOOK) \
    }

#define INGRESS_PORT standard.ingress_port
#define EGRESS_PORT standard.egress_spec
#define MULTICAST_GROUP standard.mcast_grp
#define PIPELINE meta.pipeline
#define DROP mark_to_drop(standard);
#define REJECT rejected.count((bit<32>)standard.ingress_port);
// The pipeline is the upper part of the index: no entry reaches another pipeline's slots.
#define LOCATE \
    meta.index = ((bit<32>)meta.second * SLOTS) | ((bit<32>)meta.pipeline << SLOTS_PER_PIPELINE_LOG2) \
        | (meta.slot & (SLOTS_PER_PIPELINE - 1));
#define BEFORE_INGRESS \
    if (meta.second == 1) { \
        meta.admitted = 1; \
        meta.pipeline = hdr.carried.pipeline; \
        meta.fault.possible = hdr.carried.faulty[0:0]; \
    } else { \
        meta.fault.port = (bit<32>)standard.ingress_port; \
        received.count(meta.fault.port); \
        if (standard.parser_error != error.NoError || !hdr.ipv4.isValid()) { \
            meta.gone = 1; \
            meta.outcome = EVENT_MALFORMED; \
        } else { \
            arrival.apply(hdr, meta.fault, standard); \
            if (meta.fault.gone == 1) { \
                meta.gone = 1; \
                meta.outcome = meta.fault.event; \
            } else { \
                pipeline.apply(); \
            } \
        } \
        if (meta.fault.overtaken == 1) { \
            events.count(EVENT_OVERTAKEN); \
        } \
    }
#define IS_GONE meta.gone == 1
#define GONE_BY meta.outcome
// What is written into a header that is not valid is lost.
#define RECIRCULATE \
    standard.egress_spec = RECIRCULATION_PORT; \
    hdr.carried.setValid(); \
    hdr.carried.overflow = 0; \
    hdr.carried.faulty = (bit<8>)meta.fault.possible; \
    hdr.carried.pipeline = meta.pipeline;
#define AFTER_INGRESS \
    if (meta.again == 0) { \
        events.count(meta.outcome); \
        if (meta.is_new == 1) { \
            events.count(EVENT_ADDED); \
        } \
        if (meta.reclaimed == 1) { \
            events.count(EVENT_RECLAIMED); \
        } \
        if (meta.happened != 0) { \
            events.count(meta.happened); \
        } \
        if (meta.fault.possible == 1) { \
            doubling.apply(meta.fault, standard); \
            if (meta.fault.doubled == 1) { \
                events.count(EVENT_DOUBLED); \
            } \
        } \
    }

control InaIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(EVENTS, CounterType.packets) events;
    counter(PORTS, CounterType.packets_and_bytes) received;
    counter(PORTS, CounterType.packets) rejected;  // those of `received` that EVENT_REJECTED counts

    Arrival() arrival;
    Doubling() doubling;

    action set_pipeline(bit<8> number) { meta.pipeline = number; }
    table pipeline {
        key = { standard.ingress_port: exact; }
        actions = { set_pipeline; NoAction; }
        default_action = NoAction();
        size = PORTS;
    }

    #include "ingress.p4"
}

#define FIND_END(i) meta.at_end = meta.at_end | (bit<1>)IS_END(hdr.values.v##i);
#define FIND_OVERFLOW find_overflow();
#define AFTER_EGRESS \
    meta.fault.port = (bit<32>)standard.egress_port; \
    if (hdr.carried.isValid()) { \
        recirculate_preserving_field_list(0); \
    } else { \
        departure.apply(hdr, meta.fault, standard); \
        if (meta.fault.gone == 1) { \
            lost.count(meta.fault.port); \
            mark_to_drop(standard); \
        } else { \
            sent.count(meta.fault.port); \
            marks.apply(hdr, meta.mark, standard); \
        } \
        if (standard.egress_rid != 0) { \
            replicated.count(meta.fault.port); \
        } \
    }

control InaEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    counter(PORTS, CounterType.packets_and_bytes) sent;
    counter(PORTS, CounterType.packets) replicated;  // copies of a multicast, of `sent` and `lost`
    counter(PORTS, CounterType.packets) lost;        // a fault on demand: dropped instead of sent

    Departure() departure;
    Marks() marks;

    action find_overflow() {
        EACH_VALUE(FIND_END)
    }

    #include "egress.p4"
}

control InaDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.carried);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.ina);
        packet.emit(hdr.passed);
        packet.emit(hdr.values);
        EMIT_BESIDE
    }
}

V1Switch(InaParser(), NoVerify(), InaIngress(), InaEgress(), NoUpdate(), InaDeparser()) main;
