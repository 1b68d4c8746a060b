// Lab 2, with one bit for each worker of each slot, a count of workers, and all sums in one register.

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
    bit<8> worker;
    bit<8> full;
    bit<1> known;
    bit<1> keep;      // whether ingress is to let the packet go
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

    register<bit<1>>(SLOTS * 8) seen;
    register<bit<8>>(SLOTS) missing;      // the bitmap of workers that have not sent
    register<bit<32>>(SLOTS * 8) sums;

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
        bit<32> at = (bit<32>)hdr.agg.slot;
        bit<32> first = 8 * at;
        bit<1> again = 0;
        bit<8> left = 0;
        bit<32> sum = 0;
        worker_at.apply();
        if (hdr.ethernet.type == TYPE_IPV4) {
            ipv4_lpm.apply();
            meta.keep = 1;
        } else if (hdr.ethernet.type == TYPE_AGG && meta.known == 1 && meta.worker == hdr.agg.worker
                && hdr.agg.kind == KIND_GRADIENT && at < SLOTS) {
            seen.read(again, first + (bit<32>)meta.worker);
            if (again == 0) {
                seen.write(first + (bit<32>)meta.worker, 1);
                missing.read(left, at);
                if (left == 0) {
                    left = meta.full;
                }
                left = left & ~((bit<8>)1 << meta.worker);
                missing.write(at, left);
                sums.read(sum, 8 * at + 0);
                hdr.values.v0 = hdr.values.v0 + sum;
                sums.read(sum, 8 * at + 1);
                hdr.values.v1 = hdr.values.v1 + sum;
                sums.read(sum, 8 * at + 2);
                hdr.values.v2 = hdr.values.v2 + sum;
                sums.read(sum, 8 * at + 3);
                hdr.values.v3 = hdr.values.v3 + sum;
                sums.read(sum, 8 * at + 4);
                hdr.values.v4 = hdr.values.v4 + sum;
                sums.read(sum, 8 * at + 5);
                hdr.values.v5 = hdr.values.v5 + sum;
                sums.read(sum, 8 * at + 6);
                hdr.values.v6 = hdr.values.v6 + sum;
                sums.read(sum, 8 * at + 7);
                hdr.values.v7 = hdr.values.v7 + sum;
                if (left == 0) {
                    seen.write(first + 0, 0);
                    seen.write(first + 1, 0);
                    seen.write(first + 2, 0);
                    seen.write(first + 3, 0);
                    seen.write(first + 4, 0);
                    seen.write(first + 5, 0);
                    seen.write(first + 6, 0);
                    seen.write(first + 7, 0);
                    sums.write(8 * at + 0, 0);
                    sums.write(8 * at + 1, 0);
                    sums.write(8 * at + 2, 0);
                    sums.write(8 * at + 3, 0);
                    sums.write(8 * at + 4, 0);
                    sums.write(8 * at + 5, 0);
                    sums.write(8 * at + 6, 0);
                    sums.write(8 * at + 7, 0);
                    hdr.agg.kind = KIND_RESULT;
                    standard.mcast_grp = WORKERS_GROUP;
                    meta.keep = 1;
                } else {
                    sums.write(8 * at + 0, hdr.values.v0);
                    sums.write(8 * at + 1, hdr.values.v1);
                    sums.write(8 * at + 2, hdr.values.v2);
                    sums.write(8 * at + 3, hdr.values.v3);
                    sums.write(8 * at + 4, hdr.values.v4);
                    sums.write(8 * at + 5, hdr.values.v5);
                    sums.write(8 * at + 6, hdr.values.v6);
                    sums.write(8 * at + 7, hdr.values.v7);
                }
            }
        }
        if (meta.keep == 0) {
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
