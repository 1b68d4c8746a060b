// Lab 2, with a control of its own for each element of the sums.

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
    bit<1>  known;
    bit<8>  worker;
    bit<8>  full;
    bit<8>  seen;
    bit<1>  complete;
    bit<32> at;
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

// One element of all slots: adds to it, and, when the sum is complete, gives it out and forgets it.
control Cell(inout bit<32> value, in bit<32> at, in bit<1> complete) {
    register<bit<32>>(SLOTS) held;
    bit<32> sum;
    apply {
        held.read(sum, at);
        sum = sum + value;
        if (complete == 1) {
            value = sum;
            held.write(at, 0);
        } else {
            held.write(at, sum);
        }
    }
}

control SumIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    register<bit<8>>(SLOTS) seen;
    Cell() c0; Cell() c1; Cell() c2; Cell() c3; Cell() c4; Cell() c5; Cell() c6; Cell() c7;

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

    action result() {
        hdr.agg.kind = KIND_RESULT;
        standard.mcast_grp = WORKERS_GROUP;
    }

    apply {
        drop();
        if (hdr.ipv4.isValid()) {
            ipv4_lpm.apply();
        } else if (hdr.agg.isValid() && worker_at.apply().hit && hdr.agg.worker == meta.worker
                && hdr.agg.kind == KIND_GRADIENT && hdr.agg.slot < SLOTS) {
            meta.at = (bit<32>)hdr.agg.slot;
            seen.read(meta.seen, meta.at);
            if ((meta.seen >> meta.worker) & 1 == 0) {
                meta.seen = meta.seen + ((bit<8>)1 << meta.worker);
                if (meta.seen == meta.full) {
                    meta.complete = 1;
                    meta.seen = 0;
                }
                seen.write(meta.at, meta.seen);
                c0.apply(hdr.values.v0, meta.at, meta.complete);
                c1.apply(hdr.values.v1, meta.at, meta.complete);
                c2.apply(hdr.values.v2, meta.at, meta.complete);
                c3.apply(hdr.values.v3, meta.at, meta.complete);
                c4.apply(hdr.values.v4, meta.at, meta.complete);
                c5.apply(hdr.values.v5, meta.at, meta.complete);
                c6.apply(hdr.values.v6, meta.at, meta.complete);
                c7.apply(hdr.values.v7, meta.at, meta.complete);
                if (meta.complete == 1) {
                    standard.egress_spec = 0;
                    result();
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
