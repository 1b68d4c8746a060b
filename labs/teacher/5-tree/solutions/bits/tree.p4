// Lab 5: trees of several levels for several jobs, in two pipelines. Each pipeline has registers of its own, and what is missing is kept in place of what has come.

#include <core.p4>
#include <v1model.p4>

// ---- sizes and constants, which the task gives ---------------------------------------------------

#define PIPELINES 2
#define SLOTS 64                   // of each pipeline

const bit<16> TYPE_AGG = 0x88B5;

const bit<8> KIND_GRADIENT = 1;
const bit<8> KIND_RESULT = 2;

const bit<8> ROOT_LABEL = 0;

// ---- headers -------------------------------------------------------------------------------------

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> type;
}

header agg_t {
    bit<8>  kind;
    bit<8>  label;      // whom it stands for: a worker, an aggregator, or the root (0)
    bit<8>  job;
    bit<8>  version;    // 0 in this lab
    bit<16> slot;       // counted within the slots of the job
    bit<32> round;
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
    bit<8>  pipeline;   // of the ingress port
    bit<8>  bit_of;     // the bit of the packet's label among the children of an aggregator
    bit<8>  full;       // the bitmap of all its children
    bit<8>  as_label;   // the label under which its sum leaves
    bit<16> first;      // its first slot in this pipeline
    bit<16> slots;      // and how many it has
    bit<32> at;
    bit<8>  missing;
    bit<32> sum;
}

// ---- parser --------------------------------------------------------------------------------------

parser TreeParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
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

control TreeIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {

    register<bit<8>>(SLOTS) missing_a;
    register<bit<32>>(SLOTS) sum0_a;
    register<bit<32>>(SLOTS) sum1_a;
    register<bit<32>>(SLOTS) sum2_a;
    register<bit<32>>(SLOTS) sum3_a;
    register<bit<32>>(SLOTS) sum4_a;
    register<bit<32>>(SLOTS) sum5_a;
    register<bit<32>>(SLOTS) sum6_a;
    register<bit<32>>(SLOTS) sum7_a;
    register<bit<8>>(SLOTS) missing_b;
    register<bit<32>>(SLOTS) sum0_b;
    register<bit<32>>(SLOTS) sum1_b;
    register<bit<32>>(SLOTS) sum2_b;
    register<bit<32>>(SLOTS) sum3_b;
    register<bit<32>>(SLOTS) sum4_b;
    register<bit<32>>(SLOTS) sum5_b;
    register<bit<32>>(SLOTS) sum6_b;
    register<bit<32>>(SLOTS) sum7_b;

    action drop() { mark_to_drop(standard); }

    action in_pipeline(bit<8> pipeline) { meta.pipeline = pipeline; }
    table pipeline_of {
        key = { standard.ingress_port: exact; }
        actions = { in_pipeline; NoAction; }
        default_action = NoAction();
    }

    action admit() { }
    table admitted {
        key = {
            standard.ingress_port: exact;
            hdr.agg.kind: exact;
            hdr.agg.job: exact;
            hdr.agg.label: exact;
        }
        actions = { admit; NoAction; }
        default_action = NoAction();
    }

    action aggregate(bit<8> bit_of, bit<8> full, bit<8> as_label, bit<16> first, bit<16> slots) {
        meta.bit_of = bit_of;
        meta.full = full;
        meta.as_label = as_label;
        meta.first = first;
        meta.slots = slots;
    }
    table child_of {
        key = { meta.pipeline: exact; hdr.agg.job: exact; hdr.agg.label: exact; }
        actions = { aggregate; NoAction; }
        default_action = NoAction();
    }

    action send(bit<9> port) { standard.egress_spec = port; }
    table up {
        key = { hdr.agg.job: exact; hdr.agg.label: exact; }
        actions = { send; drop; }
        default_action = drop();
    }

    action spread(bit<16> group) { standard.mcast_grp = group; }
    table down {
        key = { hdr.agg.job: exact; }
        actions = { spread; drop; }
        default_action = drop();
    }

#define BEGIN_A(N) sum##N##_a.write(meta.at, hdr.values.v##N);
#define BEGIN_B(N) sum##N##_b.write(meta.at, hdr.values.v##N);
#define ADD_A(N) \
    sum##N##_a.read(meta.sum, meta.at); \
    hdr.values.v##N = hdr.values.v##N + meta.sum; \
    sum##N##_a.write(meta.at, hdr.values.v##N);
#define ADD_B(N) \
    sum##N##_b.read(meta.sum, meta.at); \
    hdr.values.v##N = hdr.values.v##N + meta.sum; \
    sum##N##_b.write(meta.at, hdr.values.v##N);
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

    apply {
        if (!hdr.values.isValid() || !admitted.apply().hit) {
            drop();
            return;
        }
        if (hdr.agg.kind == KIND_GRADIENT) {
            pipeline_of.apply();
            if (child_of.apply().hit) {
                if (hdr.agg.slot >= meta.slots) {
                    drop();
                    return;
                }
                meta.at = (bit<32>)(meta.first + hdr.agg.slot);
                if (meta.pipeline == 0) {
                    missing_a.read(meta.missing, meta.at);
                } else {
                    missing_b.read(meta.missing, meta.at);
                }
                if (meta.missing != 0 && meta.missing & meta.bit_of == 0) {
                    drop();
                    return;
                }
                if (meta.missing == 0) {
                    meta.missing = meta.full;
                    if (meta.pipeline == 0) { EACH(BEGIN_A) } else { EACH(BEGIN_B) }
                } else {
                    if (meta.pipeline == 0) { EACH(ADD_A) } else { EACH(ADD_B) }
                }
                meta.missing = meta.missing & ~meta.bit_of;
                if (meta.pipeline == 0) {
                    missing_a.write(meta.at, meta.missing);
                } else {
                    missing_b.write(meta.at, meta.missing);
                }
                if (meta.missing != 0) {
                    drop();
                    return;
                }
                hdr.agg.label = meta.as_label;
            }
            if (hdr.agg.label != ROOT_LABEL) {
                up.apply();
                return;
            }
            hdr.agg.kind = KIND_RESULT;
        }
        down.apply();
    }
}

// ---- egress --------------------------------------------------------------------------------------

control TreeEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control TreeDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.agg);
        packet.emit(hdr.values);
    }
}

V1Switch(TreeParser(), NoVerify(), TreeIngress(), TreeEgress(), NoUpdate(), TreeDeparser()) main;
