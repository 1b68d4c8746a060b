// Tables, externs and copies of every kind that a control plane can ask something of.
//
// A packet is Ethernet and the header `asked`: `kind` chooses the table that decides its port, `key` is its key.

#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> target;
    bit<48> sender;
    bit<16> type;
}

header asked_t {
    bit<8>  kind;
    bit<32> key;
    bit<16> value;
    bit<16> queued;
    bit<16> left;
    bit<32> waited;
}

struct headers_t {
    ethernet_t ethernet;
    asked_t    asked;
}

struct metadata_t {
    @field_list(1)
    bit<16> mark;
    bit<2>  colour;
}

struct seen_t {
    bit<9>  port;
    bit<32> key;
}

parser ServedParser(packet_in packet, out headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    value_set<bit<16>>(4) known;
    state start {
        packet.extract(headers.ethernet);
        transition select(headers.ethernet.type) {
            0x88B5: asked;
            known: asked;
            default: accept;
        }
    }
    state asked {
        packet.extract(headers.asked);
        transition accept;
    }
}

control ServedVerify(inout headers_t headers, inout metadata_t meta) { apply {} }

control ServedIngress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<16>>(16) kept;
    register<bit<96>>(4) wide;
    counter(8, CounterType.packets_and_bytes) counted;
    meter(4, MeterType.packets) metered;
    action_profile(16) members;
    action_selector(HashAlgorithm.crc16, 16, 16) groups;
    direct_counter(CounterType.packets_and_bytes) hits;
    direct_meter<bit<2>>(MeterType.packets) speed;

    action send(bit<9> port) { standard.egress_spec = port; }
    action mark(bit<9> port, bit<16> value) { standard.egress_spec = port; headers.asked.value = value; }
    action drop() { mark_to_drop(standard); }
    action spread(bit<16> group) { standard.mcast_grp = group; }
    action counted_send(bit<9> port) { hits.count(); standard.egress_spec = port; }
    action metered_send(bit<9> port) { speed.read(meta.colour); standard.egress_spec = port; }
    action count_at(bit<32> index, bit<9> port) { counted.count(index); standard.egress_spec = port; }
    action meter_at(bit<32> index, bit<9> port) {
        metered.execute_meter(index, meta.colour);
        headers.asked.value = (bit<16>)meta.colour;
        standard.egress_spec = port;
    }
    action keep(bit<32> index, bit<9> port) {
        bit<96> sum;
        kept.read(headers.asked.value, index);
        wide.read(sum, index & 3);
        wide.write(index & 3, sum + 1);
        standard.egress_spec = port;
    }
    action learn() {
        digest<seen_t>(1, { standard.ingress_port, headers.asked.key });
        mark_to_drop(standard);
    }
    action copy(bit<32> session, bit<9> port) {
        meta.mark = headers.asked.value;
        clone_preserving_field_list(CloneType.I2E, session, 1);
        standard.egress_spec = port;
    }
    action hasten(bit<3> priority, bit<9> port) { standard.priority = priority; standard.egress_spec = port; }

    table exact_match {
        key = { headers.asked.key: exact; }
        actions = { send; mark; drop; spread; count_at; meter_at; keep; learn; copy; hasten; NoAction; }
        default_action = drop();
        size = 20000;
    }
    table longest_prefix {
        key = { headers.asked.key: lpm; }
        actions = { send; mark; drop; }
        default_action = drop();
        size = 8;
    }
    table masked {
        key = { headers.asked.key: ternary; standard.ingress_port: ternary; }
        actions = { send; mark; drop; }
        default_action = drop();
        size = 8;
    }
    table in_range {
        key = { headers.asked.key: range; }
        actions = { send; mark; drop; }
        default_action = drop();
        size = 8;
    }
    table maybe {
        key = { headers.asked.key: optional; }
        actions = { send; drop; }
        default_action = drop();
        size = 8;
    }
    table given {
        key = { headers.asked.key: exact; }
        actions = { send; drop; }
        const entries = {
            1: send(1);
            2: send(2);
        }
        const default_action = drop();
    }
    table counting {
        key = { headers.asked.key: exact; }
        actions = { counted_send; drop; }
        counters = hits;
        default_action = drop();
        size = 8;
    }
    table metering {
        key = { headers.asked.key: exact; }
        actions = { metered_send; drop; }
        meters = speed;
        default_action = drop();
        size = 8;
    }
    table ageing {
        key = { headers.asked.key: exact; }
        actions = { send; drop; }
        support_timeout = true;
        default_action = drop();
        size = 8;
    }
    table shared {
        key = { headers.asked.key: exact; }
        actions = { send; mark; drop; }
        implementation = members;
        size = 8;
    }
    table chosen {
        key = { headers.asked.key: exact; headers.asked.value: selector; }
        actions = { send; mark; drop; }
        implementation = groups;
        size = 8;
    }
    table keyless {
        actions = { send; drop; }
        default_action = drop();
    }
    table by_colour {
        key = { meta.colour: exact; }
        actions = { send; drop; NoAction; }
        size = 4;
    }

    apply {
        if (!headers.asked.isValid()) {
            mark_to_drop(standard);
        } else if (headers.asked.kind == 0) {
            exact_match.apply();
        } else if (headers.asked.kind == 1) {
            longest_prefix.apply();
        } else if (headers.asked.kind == 2) {
            masked.apply();
        } else if (headers.asked.kind == 3) {
            in_range.apply();
        } else if (headers.asked.kind == 4) {
            maybe.apply();
        } else if (headers.asked.kind == 5) {
            given.apply();
        } else if (headers.asked.kind == 6) {
            counting.apply();
        } else if (headers.asked.kind == 7) {
            metering.apply();
            by_colour.apply();
        } else if (headers.asked.kind == 8) {
            ageing.apply();
        } else if (headers.asked.kind == 9) {
            shared.apply();
        } else if (headers.asked.kind == 10) {
            chosen.apply();
        } else {
            keyless.apply();
        }
    }
}

control ServedEgress(inout headers_t headers, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        if (headers.asked.isValid()) {
            headers.asked.queued = (bit<16>)standard.enq_qdepth;
            headers.asked.left = (bit<16>)standard.deq_qdepth;
            headers.asked.waited = standard.deq_timedelta;
            if (standard.instance_type == 1) {
                headers.asked.value = meta.mark + 1;
            } else if (standard.instance_type == 5) {
                headers.asked.value = standard.egress_rid;
            }
        }
    }
}

control ServedUpdate(inout headers_t headers, inout metadata_t meta) { apply {} }

control ServedDeparser(packet_out packet, in headers_t headers) {
    apply {
        packet.emit(headers.ethernet);
        packet.emit(headers.asked);
    }
}

V1Switch(ServedParser(), ServedVerify(), ServedIngress(), ServedEgress(), ServedUpdate(), ServedDeparser()) main;
