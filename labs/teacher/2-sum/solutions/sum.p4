// Lab 2: one switch sums the gradients of one job.

#include <core.p4>
#include <v1model.p4>

// ---- sizes and constants, which the task gives ---------------------------------------------------

#define SLOTS 16

const bit<16> TYPE_IPV4 = 0x0800;
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

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> id;
    bit<3>  flags;
    bit<13> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header agg_t {
    bit<8>  kind;
    bit<8>  worker;     // who sends it, from 0
    bit<8>  job;        // 0 in this lab
    bit<8>  version;    // 0 in this lab
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
    ipv4_t     ipv4;
    agg_t      agg;
    values_t   values;
}

struct metadata_t {
    bit<1>  known;      // whether a worker is at the ingress port
    bit<8>  worker;     // its number
    bit<8>  full;       // the bitmap in which all workers are
    bit<32> slot;
    bit<8>  bitmap;
    bit<8>  mine;
    bit<32> sum;
}

// ---- parser --------------------------------------------------------------------------------------

parser SumParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.type) {
            TYPE_IPV4: parse_ipv4;
            TYPE_AGG: parse_agg;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
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

control SumIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    register<bit<8>>(SLOTS) bitmaps;
    register<bit<32>>(SLOTS) sum0;
    register<bit<32>>(SLOTS) sum1;
    register<bit<32>>(SLOTS) sum2;
    register<bit<32>>(SLOTS) sum3;
    register<bit<32>>(SLOTS) sum4;
    register<bit<32>>(SLOTS) sum5;
    register<bit<32>>(SLOTS) sum6;
    register<bit<32>>(SLOTS) sum7;

    action drop() { mark_to_drop(standard); }
    action forward(bit<9> port) { standard.egress_spec = port; }
    table ipv4_lpm {
        key = { hdr.ipv4.dst: lpm; }
        actions = { forward; drop; }
        default_action = drop();
    }

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

#define ADD(N) \
    sum##N.read(meta.sum, meta.slot); \
    if (meta.bitmap != 0) { hdr.values.v##N = hdr.values.v##N + meta.sum; } \
    sum##N.write(meta.slot, hdr.values.v##N);

    apply {
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        } else if (!hdr.values.isValid()) {
            drop();
        } else {
            worker_at.apply();
            meta.slot = (bit<32>)hdr.agg.slot;
            if (meta.known == 0 || hdr.agg.worker != meta.worker || hdr.agg.kind != KIND_GRADIENT
                    || meta.slot >= SLOTS) {
                drop();
            } else {
                bitmaps.read(meta.bitmap, meta.slot);
                meta.mine = (bit<8>)1 << meta.worker;
                if (meta.bitmap & meta.mine != 0) {
                    drop();
                } else {
                    ADD(0)
                    ADD(1)
                    ADD(2)
                    ADD(3)
                    ADD(4)
                    ADD(5)
                    ADD(6)
                    ADD(7)
                    meta.bitmap = meta.bitmap | meta.mine;
                    if (meta.bitmap == meta.full) {
                        bitmaps.write(meta.slot, 0);
                        hdr.agg.kind = KIND_RESULT;
                        standard.mcast_grp = WORKERS_GROUP;
                    } else {
                        bitmaps.write(meta.slot, meta.bitmap);
                        drop();
                    }
                }
            }
        }
    }
}

// ---- egress --------------------------------------------------------------------------------------

control SumEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control SumDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.agg);
        packet.emit(hdr.values);
    }
}

V1Switch(SumParser(), NoVerify(), SumIngress(), SumEgress(), NoUpdate(), SumDeparser()) main;
