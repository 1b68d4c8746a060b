#include "../types.p4"
header test_t { bit<16> a; bit<16> b; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
#define CHECKSUMS
control Update(inout headers_t hdr, inout metadata_t meta) {
    apply { update_checksum(true, { hdr.test.a }, hdr.test.b, HashAlgorithm.csum16); }
}
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}
#include "../switch.p4"
