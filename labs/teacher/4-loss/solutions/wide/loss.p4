// Lab 4, with all that a version of a slot holds in one wide register.

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

    register<bit<296>>(CELLS) cells;     // round, bitmap, eight sums

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
        bit<296> cell = 0;
        bool leaves = false;
        worker_at.apply();
        if (hdr.values.isValid() && meta.known == 1 && hdr.agg.worker == meta.worker
                && hdr.agg.kind == KIND_GRADIENT && hdr.agg.slot < SLOTS) {
            meta.cell = ((bit<32>)hdr.agg.slot << 1) | (hdr.agg.round & 1);
            cells.read(cell, meta.cell);
            bit<8> mine = (bit<8>)1 << meta.worker;
            if (hdr.agg.round > cell[295:264]) {
                cell = hdr.agg.round ++ 264w0;
            }
            if (hdr.agg.round == cell[295:264]) {
                bit<8> seen = cell[263:256];
                if (seen & mine == 0) {
                    hdr.values.v0 = hdr.values.v0 + cell[255:224];
                    hdr.values.v1 = hdr.values.v1 + cell[223:192];
                    hdr.values.v2 = hdr.values.v2 + cell[191:160];
                    hdr.values.v3 = hdr.values.v3 + cell[159:128];
                    hdr.values.v4 = hdr.values.v4 + cell[127:96];
                    hdr.values.v5 = hdr.values.v5 + cell[95:64];
                    hdr.values.v6 = hdr.values.v6 + cell[63:32];
                    hdr.values.v7 = hdr.values.v7 + cell[31:0];
                    seen = seen | mine;
                    cell = hdr.agg.round ++ seen ++ hdr.values.v0 ++ hdr.values.v1 ++ hdr.values.v2 ++ hdr.values.v3
                        ++ hdr.values.v4 ++ hdr.values.v5 ++ hdr.values.v6 ++ hdr.values.v7;
                    cells.write(meta.cell, cell);
                    if (seen == meta.full) {
                        leaves = true;
                        everyone();
                    }
                } else if (seen == meta.full) {
                    hdr.values.v0 = cell[255:224];
                    hdr.values.v1 = cell[223:192];
                    hdr.values.v2 = cell[191:160];
                    hdr.values.v3 = cell[159:128];
                    hdr.values.v4 = cell[127:96];
                    hdr.values.v5 = cell[95:64];
                    hdr.values.v6 = cell[63:32];
                    hdr.values.v7 = cell[31:0];
                    leaves = true;
                    answer();
                }
            }
        }
        if (!leaves) {
            drop();
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
