// Lab 3: a pool of slots, each in two versions. One bitmap holds both versions.

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
    bit<32> at;
    bit<16> both;       // version 0 in the low eight bits, version 1 in the others
    bit<16> mine;
    bit<16> all;
    bit<16> mask;
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

    register<bit<16>>(SLOTS) seen;
    register<bit<32>>(SLOTS) even0;
    register<bit<32>>(SLOTS) even1;
    register<bit<32>>(SLOTS) even2;
    register<bit<32>>(SLOTS) even3;
    register<bit<32>>(SLOTS) even4;
    register<bit<32>>(SLOTS) even5;
    register<bit<32>>(SLOTS) even6;
    register<bit<32>>(SLOTS) even7;
    register<bit<32>>(SLOTS) odd0;
    register<bit<32>>(SLOTS) odd1;
    register<bit<32>>(SLOTS) odd2;
    register<bit<32>>(SLOTS) odd3;
    register<bit<32>>(SLOTS) odd4;
    register<bit<32>>(SLOTS) odd5;
    register<bit<32>>(SLOTS) odd6;
    register<bit<32>>(SLOTS) odd7;

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

#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define GET(N) \
    if (hdr.agg.version == 0) { even##N.read(meta.sum, meta.at); } else { odd##N.read(meta.sum, meta.at); }
#define PUT(N) \
    if (hdr.agg.version == 0) { even##N.write(meta.at, hdr.values.v##N); } \
    else { odd##N.write(meta.at, hdr.values.v##N); }
#define MORE(N) GET(N) hdr.values.v##N = hdr.values.v##N + meta.sum; PUT(N)
#define KEPT(N) GET(N) hdr.values.v##N = meta.sum;

    apply {
        worker_at.apply();
        if (!hdr.values.isValid() || meta.known == 0 || hdr.agg.worker != meta.worker
                || hdr.agg.kind != KIND_GRADIENT || hdr.agg.slot >= SLOTS || hdr.agg.version > 1) {
            drop();
            return;
        }
        meta.at = (bit<32>)hdr.agg.slot;
        meta.mine = (bit<16>)1 << meta.worker;
        meta.all = (bit<16>)meta.full;
        meta.mask = 0xff;
        if (hdr.agg.version == 1) {
            meta.mine = meta.mine << 8;
            meta.all = meta.all << 8;
            meta.mask = 0xff00;
        }
        seen.read(meta.both, meta.at);
        if (meta.both & meta.mine != 0) {
            if (meta.both & meta.mask == meta.all) {
                EACH(KEPT)
                hdr.agg.kind = KIND_RESULT;
                standard.egress_spec = standard.ingress_port;
            } else {
                drop();
            }
            return;
        }
        if (meta.both & meta.mask == 0) {
            EACH(PUT)
        } else {
            EACH(MORE)
        }
        meta.both = meta.both | meta.mine;
        if (meta.both & meta.mask == meta.all) {
            meta.both = meta.both & meta.mask;
            hdr.agg.kind = KIND_RESULT;
            standard.mcast_grp = WORKERS_GROUP;
        } else {
            drop();
        }
        seen.write(meta.at, meta.both);
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
