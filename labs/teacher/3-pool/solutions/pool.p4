// Lab 3: a pool of slots, each in two versions. The solution.

#include <core.p4>
#include <v1model.p4>

// ---- sizes and constants, which the task gives ---------------------------------------------------

#define SLOTS 64
#define CELLS (2 * SLOTS)

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
    bit<8>  version;    // 0 or 1: which of the slot's two sums
    bit<16> slot;
    bit<32> round;      // for people who read traces: the switch does not look at it
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
    bit<1>  known;      // whether a worker is at the ingress port
    bit<8>  worker;     // its number
    bit<8>  full;       // the bitmap in which all workers are: 0b1111 for four
    bit<32> cell;       // where the slot's version is kept
    bit<32> other;      // where its other version is kept
    bit<8>  bitmap;     // who is in its sum
    bit<8>  mine;
    bit<32> sum;
}

// ---- parser --------------------------------------------------------------------------------------

parser PoolParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

control PoolIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    register<bit<8>>(CELLS) bitmaps;
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

    action everyone() {
        hdr.agg.kind = KIND_RESULT;
        standard.mcast_grp = WORKERS_GROUP;
    }
    action answer() {
        hdr.agg.kind = KIND_RESULT;
        standard.egress_spec = standard.ingress_port;
    }

#define LOAD(N) \
    sum##N.read(hdr.values.v##N, meta.cell);
#define ADD(N) \
    sum##N.read(meta.sum, meta.cell); \
    if (meta.bitmap != 0) { hdr.values.v##N = hdr.values.v##N + meta.sum; } \
    sum##N.write(meta.cell, hdr.values.v##N);

    apply {
        worker_at.apply();
        if (!hdr.values.isValid() || meta.known == 0 || hdr.agg.worker != meta.worker
                || hdr.agg.kind != KIND_GRADIENT || hdr.agg.slot >= SLOTS || hdr.agg.version > 1) {
            drop();
        } else {
            meta.cell = (bit<32>)hdr.agg.slot + (bit<32>)hdr.agg.version * SLOTS;
            meta.other = (bit<32>)hdr.agg.slot + (bit<32>)(1 - hdr.agg.version) * SLOTS;
            meta.mine = (bit<8>)1 << meta.worker;
            bitmaps.read(meta.bitmap, meta.cell);
            if (meta.bitmap & meta.mine == 0) {
                ADD(0)
                ADD(1)
                ADD(2)
                ADD(3)
                ADD(4)
                ADD(5)
                ADD(6)
                ADD(7)
                meta.bitmap = meta.bitmap | meta.mine;
                bitmaps.write(meta.cell, meta.bitmap);
                if (meta.bitmap == meta.full) {
                    bitmaps.write(meta.other, 0);   // all are past it, so nobody asks for it any more
                    everyone();
                } else {
                    drop();
                }
            } else if (meta.bitmap == meta.full) {
                LOAD(0)
                LOAD(1)
                LOAD(2)
                LOAD(3)
                LOAD(4)
                LOAD(5)
                LOAD(6)
                LOAD(7)
                answer();                           // its result is lost, or late
            } else {
                drop();                             // it is in the sum
            }
        }
    }
}

// ---- egress --------------------------------------------------------------------------------------

control PoolEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control PoolDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.agg);
        packet.emit(hdr.values);
    }
}

V1Switch(PoolParser(), NoVerify(), PoolIngress(), PoolEgress(), NoUpdate(), PoolDeparser()) main;
