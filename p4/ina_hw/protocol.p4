// The packet format of `ina.p4` as a chip parses it, and the numbers that both programs share.
//
// A chip holds the values of one pass in its parser: 32 of 64, or all of them. What it does not sum in a pass
// stays behind the values, or in front of them, as it is.

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_UDP = 17;
const bit<16> INA_UDP_PORT = 0x494e;

// ECN in the IP header (RFC 3168): who sends it heeds marks; it has met with a long queue
const bit<8> ECN_CAPABLE = 2;
const bit<8> ECN_CONGESTED = 3;

const bit<8> KIND_GRADIENT = 1;
const bit<8> KIND_RESULT = 2;
const bit<8> KIND_NOTICE = 3;

const bit<8> FLAG_ECN = 0x01;
const bit<8> FLAG_COLLISION = 0x02;
const bit<8> FLAG_OVERFLOW = 0x04;
const bit<8> FLAG_PARTIAL = 0x08;
const bit<8> FLAG_RETRANSMITTED = 0x10;
const bit<8> FLAG_DIRECT = 0x20;

// Finished sums always stay in their slots, so that there is no policy to keep them, and nothing is evicted.
const bit<8> POLICY_ROOT = 0x01;    // its sum is the result, and goes to all workers
const bit<8> POLICY_HOLD = 0x02;    // what comes again is summed as well: no partial sum ever leaves
const bit<8> POLICY_NOTIFY = 0x10;  // a fragment that finds its slot busy goes back as a notice with ECN

// What a sum says instead of the number of its workers. A chip has as many ALUs as values after the stage that finds
// whether a packet is new, and none to count with.
const bit<16> WORKERS_NOT_COUNTED = 0;

// How a packet that leaves finds its port or ports.
const bit<2> WAY_NONE = 0;
const bit<2> WAY_LABEL = 1;    // towards the root: by job, tree and label
const bit<2> WAY_TREE = 2;     // to every worker: by job and tree
const bit<2> WAY_ADDRESS = 3;  // to one host: by IPv4 address

// What happens to packets; `ina.p4` says what each means.
const event_t EVENT_MALFORMED = 0;
const event_t EVENT_REJECTED = 1;
const event_t EVENT_UNROUTABLE = 2;
const event_t EVENT_ABSORBED = 3;
const event_t EVENT_DUPLICATE = 4;
const event_t EVENT_SENT_UNICAST = 5;
const event_t EVENT_SENT_MULTICAST = 6;
const event_t EVENT_ADDED = 7;
const event_t EVENT_COMPLETED = 8;
const event_t EVENT_FLUSHED = 9;
const event_t EVENT_COLLISION = 10;
const event_t EVENT_RECLAIMED = 11;
const event_t EVENT_NOTIFIED = 13;
const event_t EVENT_ANSWERED = 14;
const event_t EVENT_RELEASED = 15;
const event_t EVENT_LOST = 16;
const event_t EVENT_HELD = 17;
const event_t EVENT_OVERTAKEN = 18;
const event_t EVENT_DOUBLED = 19;
#define EVENTS 20

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ethertype;
}

header ipv4_t {
    bit<4> version;
    bit<4> ihl;
    bit<8> tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3> ip_flags;
    bit<13> fragment_offset;
    bit<8> ttl;
    bit<8> protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header udp_t {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length;
    bit<16> checksum;
}

header ina_t {
    bit<8> kind;
    bit<8> flags;
    bit<16> job;
    bit<16> tree;
    bit<16> label;
    bit<32> seq;
    bit<32> slot;
    bit<64> bitmap;
    bit<16> workers;
    bit<8> priority;
    bit<8> part;
}

header values_t {
    EACH_VALUE(VALUE_FIELD)
}

// What a switch keeps in front of a packet from its ingress to its egress, and from one pass to the next. It is
// never on a link. An action of a chip can write a byte from one place, so that each flag has a byte of its own.
header carried_t {
    bit<8> again;     // it comes in once more, for the other half of its values
    bit<8> summed;    // its values are a sum
    bit<8> overflow;  // a sum of an earlier pass left the range of int<32>
    bit<8> is_new;    // an earlier pass added it
    bit<8> faulty;    // v1model only: it came in by a port with faults on demand
    bit<8> second;    // it has come in once more
    bit<8> pipeline;  // by which it came in
    bit<32> bitmap;   // of the children in the sum of the earlier pass
}

struct headers_t {
    carried_t carried;
    ethernet_t ethernet;
    ipv4_t ipv4;
    udp_t udp;
    ina_t ina;
    values_t passed;  // of an earlier pass
    values_t values;  // of this pass
    HEADERS_BESIDE
}
