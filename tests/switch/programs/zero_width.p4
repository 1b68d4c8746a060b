// Fields without bits, which P4 allows: they are 0, and take no place in a packet. BMv2 crashes.
#include "types.p4"

header test_t { bit<0> first; bit<12> a; bit<0> between; bit<4> b; bit<0> last; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { bit<0> nothing; }

#define PARSER \
    state start { packet.extract(hdr.ethernet); transition select(hdr.ethernet.ethertype) { \
        0: test; default: accept; } } \
    state test { packet.extract(hdr.test); transition accept; }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        meta.nothing = hdr.test.between;
        hdr.test.b = hdr.test.b + (bit<4>)meta.nothing + 1;
        hdr.test.last = hdr.test.first;
        standard.egress_spec = standard.ingress_port;
    }
}
#include "switch.p4"
