// Lab 4, with a sum that grows and a copy of the last finished one for each slot.

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
    bit<32> slot;
    bit<32> round;
    bit<8>  seen;
    bit<8>  mine;
    bit<32> sum;
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

    register<bit<32>>(SLOTS) rounds;     // the round that grows; the one before is in the copy
    register<bit<8>>(SLOTS) seen;
    register<bit<32>>(SLOTS) grows0;
    register<bit<32>>(SLOTS) copy0;
    register<bit<32>>(SLOTS) grows1;
    register<bit<32>>(SLOTS) copy1;
    register<bit<32>>(SLOTS) grows2;
    register<bit<32>>(SLOTS) copy2;
    register<bit<32>>(SLOTS) grows3;
    register<bit<32>>(SLOTS) copy3;
    register<bit<32>>(SLOTS) grows4;
    register<bit<32>>(SLOTS) copy4;
    register<bit<32>>(SLOTS) grows5;
    register<bit<32>>(SLOTS) copy5;
    register<bit<32>>(SLOTS) grows6;
    register<bit<32>>(SLOTS) copy6;
    register<bit<32>>(SLOTS) grows7;
    register<bit<32>>(SLOTS) copy7;

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
            meta.slot = (bit<32>)hdr.agg.slot;
            meta.mine = (bit<8>)1 << meta.worker;
            rounds.read(meta.round, meta.slot);
            seen.read(meta.seen, meta.slot);
            if (hdr.agg.round + 1 == meta.round) {
                copy0.read(hdr.values.v0, meta.slot);
                copy1.read(hdr.values.v1, meta.slot);
                copy2.read(hdr.values.v2, meta.slot);
                copy3.read(hdr.values.v3, meta.slot);
                copy4.read(hdr.values.v4, meta.slot);
                copy5.read(hdr.values.v5, meta.slot);
                copy6.read(hdr.values.v6, meta.slot);
                copy7.read(hdr.values.v7, meta.slot);
                answer();
            } else if (hdr.agg.round == meta.round && meta.seen & meta.mine == 0) {
                grows0.read(meta.sum, meta.slot);
                hdr.values.v0 = hdr.values.v0 + meta.sum;
                grows1.read(meta.sum, meta.slot);
                hdr.values.v1 = hdr.values.v1 + meta.sum;
                grows2.read(meta.sum, meta.slot);
                hdr.values.v2 = hdr.values.v2 + meta.sum;
                grows3.read(meta.sum, meta.slot);
                hdr.values.v3 = hdr.values.v3 + meta.sum;
                grows4.read(meta.sum, meta.slot);
                hdr.values.v4 = hdr.values.v4 + meta.sum;
                grows5.read(meta.sum, meta.slot);
                hdr.values.v5 = hdr.values.v5 + meta.sum;
                grows6.read(meta.sum, meta.slot);
                hdr.values.v6 = hdr.values.v6 + meta.sum;
                grows7.read(meta.sum, meta.slot);
                hdr.values.v7 = hdr.values.v7 + meta.sum;
                meta.seen = meta.seen | meta.mine;
                if (meta.seen == meta.full) {
                    copy0.write(meta.slot, hdr.values.v0);
                    grows0.write(meta.slot, 0);
                    copy1.write(meta.slot, hdr.values.v1);
                    grows1.write(meta.slot, 0);
                    copy2.write(meta.slot, hdr.values.v2);
                    grows2.write(meta.slot, 0);
                    copy3.write(meta.slot, hdr.values.v3);
                    grows3.write(meta.slot, 0);
                    copy4.write(meta.slot, hdr.values.v4);
                    grows4.write(meta.slot, 0);
                    copy5.write(meta.slot, hdr.values.v5);
                    grows5.write(meta.slot, 0);
                    copy6.write(meta.slot, hdr.values.v6);
                    grows6.write(meta.slot, 0);
                    copy7.write(meta.slot, hdr.values.v7);
                    grows7.write(meta.slot, 0);
                    rounds.write(meta.slot, meta.round + 1);
                    seen.write(meta.slot, 0);
                    standard.egress_spec = 0;
                    everyone();
                } else {
                    grows0.write(meta.slot, hdr.values.v0);
                    grows1.write(meta.slot, hdr.values.v1);
                    grows2.write(meta.slot, hdr.values.v2);
                    grows3.write(meta.slot, hdr.values.v3);
                    grows4.write(meta.slot, hdr.values.v4);
                    grows5.write(meta.slot, hdr.values.v5);
                    grows6.write(meta.slot, hdr.values.v6);
                    grows7.write(meta.slot, hdr.values.v7);
                    seen.write(meta.slot, meta.seen);
                }
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
