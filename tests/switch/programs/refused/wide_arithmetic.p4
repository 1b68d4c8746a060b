#include "../types.p4"
header test_t { bit<64> a; bit<64> b; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hdr.test.a = hdr.test.a |+| hdr.test.b; }
}
#include "../switch.p4"
