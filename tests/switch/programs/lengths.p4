// Headers of variable length, alone and in a stack: what follows each of them stands at no constant place.
#include "types.p4"

header test_t { bit<8> kind; bit<8> bits; }
header options_t { bit<4> a; bit<4> words; varbit<320> data; bit<16> after; }
header option_t { bit<8> bytes; varbit<256> data; }
header tail_t { bit<336> value; bit<8> last; }
struct headers_t { ethernet_t ethernet; test_t test; options_t options; option_t[2] list; options_t copy; tail_t tail; }
struct metadata_t { }

#define PARSER \
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); \
        transition select(hdr.test.kind) { 0: accept; 1 .. 9: options; default: list; } } \
    state options { packet.extract(hdr.options, (bit<32>)hdr.test.bits << 1); \
        transition select(hdr.options.after[15:12]) { 0: list; 1: tail; default: accept; } } \
    state list { packet.extract(hdr.list.next, (bit<32>)packet.lookahead<bit<8>>() << 3); \
        transition select(hdr.list.last.bytes) { 0: accept; 1: tail; default: list; } } \
    state tail { packet.extract(hdr.tail); transition accept; }
#define DEPARSER packet.emit(hdr.tail); packet.emit(hdr.ethernet); packet.emit(hdr.test); packet.emit(hdr.copy); \
    packet.emit(hdr.options); packet.emit(hdr.list);

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.ingress_port;
        if (!hdr.test.isValid()) { return; }
        if (standard.parser_error == error.PacketTooShort) { hdr.test.bits = 0xe1; }
        if (standard.parser_error == error.HeaderTooShort) { hdr.test.bits = 0xe2; }
        if (standard.parser_error == error.ParserInvalidArgument) { hdr.test.bits = 0xe3; }
        if (standard.parser_error == error.StackOutOfBounds) { hdr.test.bits = 0xe4; }
        if (hdr.test.kind == 2) { hdr.copy = hdr.options; hdr.options.setInvalid(); }
        else if (hdr.test.kind == 3) { hdr.copy = hdr.options; hdr.copy.a = 15; hdr.options.after = 0xffff; }
        else if (hdr.test.kind == 4) { hdr.options.setInvalid(); hdr.test.setInvalid(); }
        else if (hdr.test.kind == 10) { hdr.list.pop_front(1); }
        else if (hdr.test.kind == 11) { hdr.list.push_front(1); hdr.list[0].setValid(); hdr.list[0].bytes = 0xaa; }
        else if (hdr.test.kind == 12) { hdr.list[1] = hdr.list[0]; }
        if (hdr.tail.isValid()) { hdr.tail.last = hdr.tail.last + 1; }
    }
}
#include "switch.p4"
