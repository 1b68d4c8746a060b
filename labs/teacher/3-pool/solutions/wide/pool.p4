// Lab 3: a pool of slots, each in two versions. A sum is one wide cell.

#include <core.p4>
#include <v1model.p4>

// ---- sizes and constants, which the task gives ---------------------------------------------------

#define SLOTS 64

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
    bit<256> all;
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
    bit<9>  cell;
    bit<8>  bitmap;
    bit<8>  mine;
    bit<256> total;
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

    register<bit<256>>(2 * SLOTS) totals;
    register<bit<8>>(2 * SLOTS) bitmaps;

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

#define PART(HIGH, LOW) meta.total[HIGH:LOW] = meta.total[HIGH:LOW] + hdr.values.all[HIGH:LOW];

    apply {
        if (!hdr.values.isValid() || !worker_at.apply().hit || hdr.agg.worker != meta.worker
                || hdr.agg.kind != KIND_GRADIENT || hdr.agg.slot > SLOTS - 1 || hdr.agg.version > 1) {
            drop();
            exit;
        }
        meta.cell = ((bit<9>)hdr.agg.slot << 1) | (bit<9>)hdr.agg.version;
        meta.mine = (bit<8>)1 << meta.worker;
        bitmaps.read(meta.bitmap, (bit<32>)meta.cell);
        totals.read(meta.total, (bit<32>)meta.cell);
        if (meta.bitmap & meta.mine == 0) {
            if (meta.bitmap == 0) {
                meta.total = 0;
            }
            PART(31, 0)
            PART(63, 32)
            PART(95, 64)
            PART(127, 96)
            PART(159, 128)
            PART(191, 160)
            PART(223, 192)
            PART(255, 224)
            totals.write((bit<32>)meta.cell, meta.total);
            bitmaps.write((bit<32>)meta.cell, meta.bitmap | meta.mine);
            if (meta.bitmap | meta.mine != meta.full) {
                drop();
                exit;
            }
            bitmaps.write((bit<32>)(meta.cell ^ 1), 0);
            standard.mcast_grp = WORKERS_GROUP;
        } else if (meta.bitmap != meta.full) {
            drop();
            exit;
        } else {
            standard.egress_spec = standard.ingress_port;
        }
        hdr.agg.kind = KIND_RESULT;
        hdr.values.all = meta.total;
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
