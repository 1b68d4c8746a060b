// Lab 2, with all that a slot holds in one wide register.

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
    bit<8>   worker;
    bit<8>   full;
    bit<1>   known;
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

    register<bit<264>>(SLOTS) slots;   // the bitmap, then the eight sums

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

    apply {
        bool finished = false;
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
            exit;
        }
        if (hdr.agg.isValid() && hdr.agg.kind == KIND_GRADIENT && hdr.agg.slot < SLOTS) {
            worker_at.apply();
            if (meta.known == 1 && meta.worker == hdr.agg.worker) {
                bit<264> slot;
                bit<8> one = (bit<8>)(8w1 << meta.worker);
                slots.read(slot, (bit<32>)hdr.agg.slot);
                bit<8> seen = slot[263:256];
                if (seen & one == 0) {
                    values_t v = hdr.values;
                    v.v0 = v.v0 + slot[255:224];
                    v.v1 = v.v1 + slot[223:192];
                    v.v2 = v.v2 + slot[191:160];
                    v.v3 = v.v3 + slot[159:128];
                    v.v4 = v.v4 + slot[127:96];
                    v.v5 = v.v5 + slot[95:64];
                    v.v6 = v.v6 + slot[63:32];
                    v.v7 = v.v7 + slot[31:0];
                    seen = seen | one;
                    finished = seen == meta.full;
                    if (finished) {
                        hdr.values = v;
                        slot = 0;
                    } else {
                        slot = seen ++ v.v0 ++ v.v1 ++ v.v2 ++ v.v3 ++ v.v4 ++ v.v5 ++ v.v6 ++ v.v7;
                    }
                    slots.write((bit<32>)hdr.agg.slot, slot);
                }
            }
        }
        if (finished) {
            hdr.agg.kind = KIND_RESULT;
            standard.mcast_grp = WORKERS_GROUP;
        } else {
            mark_to_drop(standard);
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
