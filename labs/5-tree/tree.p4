// Lab 5: trees of several levels for several jobs, in two pipelines. Replace the TODOs; keep the tables and their actions.

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
    // TODO: what else do you need between a table and a register?
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

    // TODO step 1: registers. Two pipelines with SLOTS slots each: how many cells is that?

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

    apply {
        // Apply all five tables from the first step on: p4c leaves out those that are never applied.
        // TODO step 1: admit what the plan admits, and sum what an aggregator here sums.
        // TODO step 2: what is summed elsewhere, and results.
        drop();
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
