// Headers that come, go, move and are copied, in stacks and unions too; fields wider than 64 bits; checksums and hashes.
#include "types.p4"

header test_t { bit<8> kind; bit<8> flags; bit<16> sum; bit<16> hashed; bit<32> hashed32; }
header tag_t { bit<16> number; bit<15> rest; bit<1> last; }
header wide_t { bit<128> value; bit<4> low; bit<100> odd; int<96> minus; bit<24> shift; }
header brief_t { bit<8> a; bit<8> b; }
header long_t { bit<32> b; }
header_union either_t { brief_t brief; long_t longer; }
struct headers_t { ethernet_t ethernet; test_t test; tag_t[3] tags; wide_t wide; wide_t copy; either_t either; }
struct metadata_t { bit<8> ahead; }

#define PARSER \
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); \
        transition select(hdr.test.flags) { 1 &&& 1: tags; default: inside; } } \
    state tags { packet.extract(hdr.tags.next); transition select(hdr.tags.last.last) { 1: inside; default: tags; } } \
    state inside { transition select(hdr.test.flags) { \
        2 &&& 2: wide; 4 &&& 4: brief; 8 &&& 8: longer; 16 &&& 16: ahead; 32 &&& 32: skip; default: accept; } } \
    state wide { packet.extract(hdr.wide); transition accept; } \
    state brief { packet.extract(hdr.either.brief); verify(hdr.either.brief.a != 7, error.HeaderTooShort); \
        transition accept; } \
    state longer { packet.extract(hdr.either.longer); transition accept; } \
    state ahead { meta.ahead = packet.lookahead<bit<8>>(); transition select(packet.lookahead<bit<4>>()) { \
        1: brief; 2: longer; default: accept; } } \
    state skip { packet.advance(24); transition brief; }
#define DEPARSER packet.emit(hdr.tags); packet.emit(hdr.ethernet); packet.emit(hdr.test); packet.emit(hdr.copy); \
    packet.emit(hdr.wide); packet.emit(hdr.either);
#define EGRESS \
    if (standard.egress_port == 4) { hdr.tags.push_front(1); hdr.tags[0].setValid(); hdr.tags[0].number = 0xe4; } \
    if (standard.egress_port == 9 && hdr.test.isValid()) { hdr.ethernet.setInvalid(); hdr.test.sum = standard.packet_length[15:0]; } \
    if (hdr.test.isValid() && hdr.test.kind == 12) { hdr.test.setInvalid(); mark_to_drop(standard); }
#define CHECKSUMS
control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.test.isValid() && hdr.test.kind != 13,
            { hdr.test.kind, hdr.test.flags, hdr.either.brief.a, hdr.wide.value, 8w0, hdr.wide.low, hdr.wide.odd,
              hdr.wide.minus }, hdr.test.sum, HashAlgorithm.csum16);
    }
}

control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {
        standard.egress_spec = standard.ingress_port;
        if (hdr.test.isValid() && hdr.test.flags & 0x80 != 0) { standard.mcast_grp = 3; }
        if (standard.parser_error != error.NoError) { standard.egress_spec = 2; }
        if (!hdr.test.isValid()) { return; }
        if (hdr.test.kind == 1) { hdr.tags.push_front(1); hdr.tags[0] = { 0x1234, 0x77, 1 }; }
        else if (hdr.test.kind == 2) { hdr.tags.push_front(2); hdr.tags[1].setValid(); }
        else if (hdr.test.kind == 3) { hdr.tags.pop_front(1); }
        else if (hdr.test.kind == 4) { hdr.tags.pop_front(2); hdr.tags[2].setValid(); hdr.tags[2].number = 9; }
        else if (hdr.test.kind == 5) { hdr.copy = hdr.wide; hdr.wide.value = hdr.wide.value + 1; }
        else if (hdr.test.kind == 6) { hdr.wide.setInvalid(); hdr.either.longer.setValid(); }
        else if (hdr.test.kind == 7) { hdr.either.brief.setValid(); hdr.either.brief.b = 3; }
        else if (hdr.test.kind == 8) {
            hdr.wide.odd = hdr.wide.odd - hdr.wide.value[99:0];
            hdr.wide.value = hdr.wide.value * 0xfedcba9876543210ffffffff;
            hdr.wide.minus = hdr.wide.minus >> hdr.wide.shift[7:0];
        }
        else if (hdr.test.kind == 9) {
            hdr.wide.odd = hdr.wide.odd >> hdr.wide.shift[7:0];
            hdr.wide.value = (hdr.wide.value << hdr.wide.shift[7:0]) ^ 0x0123456789abcdef0123456789abcdef;
            hdr.wide.minus = hdr.wide.minus |+| -0x123456789abcdef012345678;
        }
        else if (hdr.test.kind == 10) {
            hdr.wide.low = ((bit<1>)(hdr.wide.minus < 0) ++ 3w0) | (hdr.wide.value > 0x8000000000000000 ? 4w1 : 4w2);
            hdr.wide.value = hdr.wide.value[63:0] ++ hdr.wide.value[127:64];
        }
        else if (hdr.test.kind == 11) {
            hash(hdr.test.hashed, HashAlgorithm.crc16, 16w3, { hdr.test.kind, hdr.test.sum, 5w1, 3w0 }, 16w1000);
            if (hdr.wide.isValid()) {
                hash(hdr.test.hashed32, HashAlgorithm.crc32, 32w0, { hdr.ethernet.src, hdr.wide.value },
                     33w0x100000000);
            }
        }
        else if (hdr.test.kind == 14) { hdr.tags[0] = hdr.tags[1]; hdr.ethernet.src = 40w0 ++ meta.ahead; exit; }
        else if (hdr.test.kind == 15) {
            hash(hdr.test.hashed, HashAlgorithm.xor16, 16w0, { hdr.ethernet.src, hdr.test.flags }, 17w65536);
            hash(hdr.test.hashed32, HashAlgorithm.identity, 32w0, { hdr.ethernet.src }, 33w0x100000000);
        }
        if (hdr.test.isValid()) { hdr.test.hashed32 = hdr.test.hashed32 + (bit<32>)standard.packet_length; }
        hdr.tags[2].rest = 5;
    }
}
#include "switch.p4"
