// Unsigned and signed arithmetic: each result is one expression over a, b (8 bits) and c, d (64 bits).
#include "types.p4"

header test_t {
    bit<8> a;
    bit<8> b;
    bit<64> c;
    bit<64> d;
    bit<8> sum;
    bit<8> difference;
    bit<8> product;
    bit<8> opposite;
    bit<8> inverse;
    bit<8> shifted_left;
    bit<8> shifted_right;
    bit<8> saturated_sum;
    bit<8> saturated_difference;
    bit<8> signed_saturated_sum;
    bit<8> signed_shifted_right;
    bit<64> wide_sum;
    bit<64> wide_difference;
    bit<64> wide_product;
    bit<64> wide_shifted_left;
    bit<64> wide_shifted_right;
    bit<16> widened;
    bit<16> sign_widened;
    bit<16> joined;
    bit<8> slice;
    bit<1> less;
    bit<1> signed_less;
    bit<1> wide_greater;
    bit<1> both;
    bit<1> chosen;
    bit<3> mixed;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        bit<8> a = hdr.test.a;
        bit<8> b = hdr.test.b;
        hdr.test.sum = a + b;
        hdr.test.difference = a - b;
        hdr.test.product = a * b;
        hdr.test.opposite = -a;
        hdr.test.inverse = ~a ^ (a | b) & b;
        hdr.test.shifted_left = a << b;
        hdr.test.shifted_right = a >> b;
        hdr.test.saturated_sum = a |+| b;
        hdr.test.saturated_difference = a |-| b;
        hdr.test.signed_saturated_sum = (bit<8>)((int<8>)a |+| (int<8>)b);
        hdr.test.signed_shifted_right = (bit<8>)((int<8>)a >> 3);
        hdr.test.wide_sum = hdr.test.c + hdr.test.d;
        hdr.test.wide_difference = hdr.test.c - hdr.test.d;
        hdr.test.wide_product = hdr.test.c * hdr.test.d;
        hdr.test.wide_shifted_left = hdr.test.c << b;
        hdr.test.wide_shifted_right = hdr.test.c >> b;
        hdr.test.widened = (bit<16>)a + (bit<16>)b;
        hdr.test.sign_widened = (bit<16>)(int<16>)(int<8>)a;
        hdr.test.joined = a ++ b;
        hdr.test.slice = a[6:3] ++ b[7:4];
        hdr.test.less = a < b ? 1w1 : 0;
        hdr.test.signed_less = (int<8>)a < (int<8>)b ? 1w1 : 0;
        hdr.test.wide_greater = hdr.test.c > hdr.test.d ? 1w1 : 0;
        hdr.test.both = (a > 10 && !(b == 3)) || hdr.test.c != hdr.test.d ? 1w1 : 0;
        hdr.test.chosen = (a & 1) == 1 ? a[7:7] : b[7:7];
        hdr.test.mixed = a[2:0] ^ b[7:5];
        standard.egress_spec = standard.ingress_port;
    }
}
#include "switch.p4"
