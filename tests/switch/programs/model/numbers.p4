#include "../types.p4"
// Arithmetic on fields far wider than a machine's words.
header test_t {
    bit<2048> a;
    bit<2048> b;
    bit<2048> sum;
    bit<1024> difference;
    bit<2048> product;
    bit<512> shifted;
    int<128> c;
    int<128> d;
    int<128> saturated;
    int<128> shifted_right;
    bit<128> saturated_difference;
    bit<256> joined;
    bit<96> slice;
    bit<1> less;
    bit<1> signed_less;
    bit<1> same;
    bit<5> unused;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.test.sum = hdr.test.a + hdr.test.b;
        hdr.test.difference = (bit<1024>)hdr.test.a - (bit<1024>)hdr.test.b;
        hdr.test.product = hdr.test.a * hdr.test.b;
        hdr.test.shifted = (bit<512>)hdr.test.a << (bit<8>)hdr.test.b;
        hdr.test.saturated = hdr.test.c |+| hdr.test.d;
        hdr.test.shifted_right = hdr.test.c >> (bit<7>)hdr.test.b;
        hdr.test.saturated_difference = (bit<128>)hdr.test.c |-| (bit<128>)hdr.test.d;
        hdr.test.joined = (bit<128>)hdr.test.c ++ (bit<128>)hdr.test.d;
        hdr.test.slice = hdr.test.a[1100:1005];
        hdr.test.less = (bit<1>)(hdr.test.a < hdr.test.b);
        hdr.test.signed_less = (bit<1>)(hdr.test.c < hdr.test.d);
        hdr.test.same = hdr.test.c == hdr.test.d ? 1w1 : 0;
        standard.egress_spec = standard.ingress_port;
    }
}
#include "../switch.p4"
