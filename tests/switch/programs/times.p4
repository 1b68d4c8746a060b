// When a packet came, and how long it waited.
#include "types.p4"

header test_t { bit<48> came; bit<48> left; bit<32> queued; bit<32> waited; bit<32> depth; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }

#define PARSER \
    state start { packet.extract(hdr.ethernet); transition select(hdr.ethernet.ethertype) { \
        0: test; default: accept; } } \
    state test { packet.extract(hdr.test); transition accept; }
#define EGRESS \
    hdr.test.left = standard.egress_global_timestamp; hdr.test.queued = standard.enq_timestamp; \
    hdr.test.waited = standard.deq_timedelta; hdr.test.depth = (bit<32>)standard.deq_qdepth;
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.test.came = standard.ingress_global_timestamp;
        standard.egress_spec = standard.ingress_port;
    }
}
#include "switch.p4"
