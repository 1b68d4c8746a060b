// Lab 4, with the round that is expected next of each worker in each slot.

#include <core.p4>
#include <v1model.p4>

// ---- sizes and constants, which the task gives ---------------------------------------------------

#define SLOTS 16      // each slot has two versions: that of even rounds and that of odd ones
#define CELLS 32

const bit<16> TYPE_AGG = 0x88B5;

const bit<8> KIND_GRADIENT = 1;
const bit<8> KIND_RESULT = 2;

const bit<16> WORKERS_GROUP = 1;   // the multicast group of all workers' ports

// ---- headers -------------------------------------------------------------------------------------

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header agg_t {
    bit<8>  kind;
    bit<8>  worker;     // who sends it, from 0
    bit<8>  job;        // 0 in this lab
    bit<8>  version;    // 0 in this lab: the last bit of the round says it
    bit<16> slot;
    bit<32> round;      // counts the sums of a slot, from 0
}

header values_t {
    bit<32> v0;
    bit<32> v1;
    bit<32> v2;
    bit<32> v3;
    bit<32> v4;
    bit<32> v5;
    bit<32> v6;
    bit<32> v7;
}

struct headers_t {
    ethernet_t ethernet;
    agg_t      agg;
    values_t   values;
}

struct metadata_t {
    bit<1>  known;
    bit<8>  worker;
    bit<8>  full;
    bit<32> cell;
    bit<32> next;
    bit<8>  seen;
    bit<8>  mine;
    bit<32> sum;
    bit<1>  fresh;
}

// ---- parser --------------------------------------------------------------------------------------

parser LossParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_AGG: parse_agg;
            default: accept;
        }
    }
    state parse_agg {
        packet.extract(hdr.agg);
        packet.extract(hdr.values);
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }

// ---- ingress -------------------------------------------------------------------------------------

control LossIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    register<bit<32>>(SLOTS * 8) expected;
    register<bit<8>>(CELLS) seen;
    register<bit<32>>(CELLS) sum0;
    register<bit<32>>(CELLS) sum1;
    register<bit<32>>(CELLS) sum2;
    register<bit<32>>(CELLS) sum3;
    register<bit<32>>(CELLS) sum4;
    register<bit<32>>(CELLS) sum5;
    register<bit<32>>(CELLS) sum6;
    register<bit<32>>(CELLS) sum7;

    action drop() { mark_to_drop(standard); }
    action is_worker(bit<8> worker, bit<8> full) {
        meta.known = 1;
        meta.worker = worker;
        meta.full = full;
    }
    table worker_at {
        key = { standard.ingress_port: exact; }
        actions = { is_worker; NoAction; }
        default_action = NoAction();
    }

    action answer() {
        hdr.agg.kind = KIND_RESULT;
        standard.egress_spec = standard.ingress_port;
    }
    action everyone() {
        hdr.agg.kind = KIND_RESULT;
        standard.mcast_grp = WORKERS_GROUP;
    }

    apply {
        drop();
        worker_at.apply();
        if (hdr.values.isValid() && meta.known == 1 && hdr.agg.worker == meta.worker
                && hdr.agg.kind == KIND_GRADIENT && hdr.agg.slot < SLOTS) {
            bit<32> place = (bit<32>)hdr.agg.slot * 8 + (bit<32>)meta.worker;
            meta.cell = (bit<32>)hdr.agg.slot * 2 + (hdr.agg.round & 1);
            meta.mine = (bit<8>)1 << meta.worker;
            expected.read(meta.next, place);
            seen.read(meta.seen, meta.cell);
            if (hdr.agg.round == meta.next) {
                expected.write(place, meta.next + 1);
                if (meta.seen == meta.full || meta.seen == 0) {
                    meta.seen = 0;               // the first gradient of its round
                    meta.fresh = 1;
                }
                sum0.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v0 = hdr.values.v0 + meta.sum;
                }
                sum0.write(meta.cell, hdr.values.v0);
                sum1.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v1 = hdr.values.v1 + meta.sum;
                }
                sum1.write(meta.cell, hdr.values.v1);
                sum2.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v2 = hdr.values.v2 + meta.sum;
                }
                sum2.write(meta.cell, hdr.values.v2);
                sum3.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v3 = hdr.values.v3 + meta.sum;
                }
                sum3.write(meta.cell, hdr.values.v3);
                sum4.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v4 = hdr.values.v4 + meta.sum;
                }
                sum4.write(meta.cell, hdr.values.v4);
                sum5.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v5 = hdr.values.v5 + meta.sum;
                }
                sum5.write(meta.cell, hdr.values.v5);
                sum6.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v6 = hdr.values.v6 + meta.sum;
                }
                sum6.write(meta.cell, hdr.values.v6);
                sum7.read(meta.sum, meta.cell);
                if (meta.fresh == 0) {
                    hdr.values.v7 = hdr.values.v7 + meta.sum;
                }
                sum7.write(meta.cell, hdr.values.v7);
                meta.seen = meta.seen | meta.mine;
                seen.write(meta.cell, meta.seen);
                if (meta.seen == meta.full) {
                    standard.egress_spec = 0;
                    everyone();
                }
            } else if (hdr.agg.round + 1 == meta.next && meta.seen == meta.full) {
                sum0.read(hdr.values.v0, meta.cell);
                sum1.read(hdr.values.v1, meta.cell);
                sum2.read(hdr.values.v2, meta.cell);
                sum3.read(hdr.values.v3, meta.cell);
                sum4.read(hdr.values.v4, meta.cell);
                sum5.read(hdr.values.v5, meta.cell);
                sum6.read(hdr.values.v6, meta.cell);
                sum7.read(hdr.values.v7, meta.cell);
                answer();
            }
        }
    }
}

// ---- egress --------------------------------------------------------------------------------------

control LossEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control LossDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.agg);
        packet.emit(hdr.values);
    }
}

V1Switch(LossParser(), NoVerify(), LossIngress(), LossEgress(), NoUpdate(), LossDeparser()) main;
