// Fields that are no whole bytes: each is read, turned round, and written back among its neighbours.
#include "types.p4"

header test_t {
    bit<3> three;
    bit<13> thirteen;
    bit<20> twenty;
    bit<4> four;
    bit<9> nine;
    bit<39> untouched;
    bit<33> thirty_three;
    bit<48> forty_eight;
    bit<7> seven;
    bit<24> twenty_four;
    bit<56> fifty_six;
    int<40> forty;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.test.three = ~hdr.test.three;
        hdr.test.thirteen = hdr.test.thirteen + 1;
        hdr.test.twenty = hdr.test.twenty - 1;
        hdr.test.four = hdr.test.four ^ 5;
        hdr.test.nine = hdr.test.nine << 1;
        hdr.test.thirty_three = hdr.test.thirty_three + 0x1ffffffff;
        hdr.test.forty_eight = ~hdr.test.forty_eight;
        hdr.test.seven = hdr.test.seven * 3;
        hdr.test.twenty_four = hdr.test.twenty_four >> 4;
        hdr.test.fifty_six = hdr.test.fifty_six + 255;
        hdr.test.forty = hdr.test.forty >> 1;
        standard.egress_spec = standard.ingress_port;
    }
}
#include "switch.p4"
