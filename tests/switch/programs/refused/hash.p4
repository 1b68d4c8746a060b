#include "../types.p4"
header test_t { bit<32> a; bit<32> b; }
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { hash(hdr.test.b, HashAlgorithm.crc32, 32w0, { hdr.test.a }, 32w16); }
}
#include "../switch.p4"
