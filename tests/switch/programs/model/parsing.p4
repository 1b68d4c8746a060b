#include "../types.p4"
// Stacks, unions, fields of variable length, value sets, lookahead and the parser's errors. What the parser made of the
// packet is in the header `test` behind it.
error { TooManyLabels }
header label_t { bit<7> value; bit<1> last; }
header option_t { bit<8> length; varbit<64> data; }
header short_t { bit<8> value; }
header long_t { bit<24> value; }
header_union number_t { short_t short; long_t long; }
header test_t { bit<32> failure; bit<8> labels; bit<8> ahead; bit<8> sum; }
struct headers_t { ethernet_t ethernet; label_t[3] labels; option_t option; number_t number; short_t[4] spare; test_t test; }
struct metadata_t { bit<8> ahead; bit<8> labels; }
#define PARSER \
    value_set<bit<16>>(4) numbers; \
    state start { packet.extract(hdr.ethernet); transition select(hdr.ethernet.ethertype) { \
        0x0001: labels; 0x0002: option; 0x0003: ahead; 0x0100 &&& 0xff00: skip; numbers: number; default: accept; } } \
    state labels { packet.extract(hdr.labels.next); meta.labels = meta.labels + 1; \
        verify(meta.labels < 4, error.TooManyLabels); \
        transition select(hdr.labels.last.last) { 1: number; default: labels; } } \
    state option { bit<8> length = packet.lookahead<bit<8>>(); \
        packet.extract(hdr.option, (bit<32>)length << 3); transition accept; } \
    state ahead { meta.ahead = packet.lookahead<bit<12>>()[7:0]; transition accept; } \
    state skip { packet.advance((bit<32>)hdr.ethernet.ethertype[7:0]); transition number; } \
    state number { transition select(packet.lookahead<bit<1>>()) { 0: short; 1: long; } } \
    state short { packet.extract(hdr.number.short); transition accept; } \
    state long { packet.extract(hdr.number.long); transition accept; }
#define DEPARSER packet.emit(hdr);
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        hdr.test.setValid();
        hdr.test.failure = 0;
        if (standard.parser_error == error.PacketTooShort) { hdr.test.failure = 1; }
        if (standard.parser_error == error.StackOutOfBounds) { hdr.test.failure = 2; }
        if (standard.parser_error == error.HeaderTooShort) { hdr.test.failure = 3; }
        if (standard.parser_error == error.ParserInvalidArgument) { hdr.test.failure = 4; }
        if (standard.parser_error == error.TooManyLabels) { hdr.test.failure = 5; }
        if (standard.parser_error == error.NoMatch) { hdr.test.failure = 6; }
        hdr.test.labels = meta.labels;
        hdr.test.ahead = meta.ahead;
        if (hdr.number.short.isValid() && hdr.number.short.value == 0x11) {
            hdr.number.long.setValid();
            hdr.number.long.value = 0xabcdef;
        } else if (hdr.number.long.isValid() && hdr.number.long.value == 0x800001) {
            hdr.number.long.setInvalid();
        }
        hdr.test.sum = hdr.labels[0].isValid() ? 8w1 : 0;
        if (hdr.labels[1].isValid()) {
            hdr.labels.push_front(1);
            hdr.labels[0].setValid();
            hdr.labels[0].value = 0x55;
        } else if (hdr.labels[0].isValid()) {
            hdr.labels.pop_front(1);
        }
        standard.egress_spec = standard.ingress_port;
    }
}
#include "../switch.p4"
