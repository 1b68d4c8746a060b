#include "../types.p4"
header test_t { bit<32> a; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { bit<8> next; }
#define PARSER \
    state start { packet.extract(hdr.ethernet); meta.next = packet.lookahead<bit<8>>(); transition accept; }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { standard.egress_spec = (bit<9>)meta.next; }
}
#include "../switch.p4"
