// Lab 2: one switch sums the gradients of one job. Replace the TODOs; keep the tables and their actions.

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
    bit<8>  full;       // the bitmap in which all workers are: 0b1111 for four
    // TODO: what else do you need between a table and a register?
}

// ---- parser --------------------------------------------------------------------------------------

parser SumParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                 inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        // TODO step 1: IPv4 goes to parse_ipv4. TODO step 3: aggregations go to parse_agg.
        transition accept;
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
    state parse_agg {
        // TODO step 3: a packet of an aggregation has two headers more.
        transition accept;
    }
}

control NoVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout metadata_t meta) { apply { } }

// ---- ingress -------------------------------------------------------------------------------------

control SumIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    // TODO step 3: a register for each value of a slot, such as
    //     register<bit<32>>(SLOTS) sum0;
    // TODO step 6: a register for who has sent.

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
        // TODO step 1: IPv4 goes where ipv4_lpm says.
        // TODO step 2: admit gradients of workers only (worker_at.apply()).
        // TODO steps 3 to 8: sum them.
        drop();
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
