#include "../types.p4"
// Hashes, checksums with the payload, registers wider than a word, meters, counters, random numbers, log messages.
header test_t {
    bit<8> index;
    bit<24> a;
    bit<5> b;
    bit<3> unused;
    bit<16> crc16;
    bit<32> crc32;
    bit<16> sum;
    bit<16> exclusive;
    bit<64> same;
    bit<16> in_range;
    bit<100> before;
    bit<4> colour;
    bit<8> random;
    bit<8> bad;
    bit<16> checksum;
    bit<16> with_payload;
}
struct headers_t { ethernet_t ethernet; test_t test; }
struct metadata_t { }
parser TestParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.test); transition accept; }
}
control Check(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(
            hdr.test.index != 4, { hdr.test.a, hdr.test.index, 16w0xabcd }, hdr.test.checksum, HashAlgorithm.csum16);
    }
}
control Update(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(
            hdr.test.index != 3, { hdr.test.a, hdr.test.index, 16w0xabcd }, hdr.test.checksum, HashAlgorithm.csum16);
        update_checksum_with_payload(true, { hdr.test.a }, hdr.test.with_payload, HashAlgorithm.csum16);
    }
}
control TestIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<100>>(4) last;
    counter(4, CounterType.packets_and_bytes) seen;
    meter(4, MeterType.bytes) rate;
    apply {
        standard.egress_spec = standard.ingress_port;
        hash(hdr.test.crc16, HashAlgorithm.crc16, 16w0, { hdr.test.a, hdr.test.b }, 32w65536);
        hash(hdr.test.crc32, HashAlgorithm.crc32, 32w0, { hdr.test.b, hdr.test.a }, 64w0x100000000);
        hash(hdr.test.sum, HashAlgorithm.csum16, 16w0, { hdr.test.a, hdr.test.index }, 32w65536);
        hash(hdr.test.exclusive, HashAlgorithm.xor16, 16w0, { hdr.test.a, 16w0x1234 }, 32w65536);
        hash(hdr.test.same, HashAlgorithm.identity, 64w0, { hdr.test.a, hdr.test.index, 48w1 }, 64w0xffffffffffffffff);
        hash(hdr.test.in_range, HashAlgorithm.crc32_custom, 16w100, { hdr.test.a }, 16w10);
        last.read(hdr.test.before, (bit<32>)hdr.test.index);
        last.write((bit<32>)hdr.test.index, (bit<100>)hdr.test.a << 70);
        seen.count((bit<32>)hdr.test.index);
        rate.execute_meter<bit<4>>((bit<32>)hdr.test.index, hdr.test.colour);
        random(hdr.test.random, 3, 9);
        hdr.test.bad = (bit<8>)standard.checksum_error;
        log_msg("index {} of {}", { hdr.test.index, hdr.test.a });
        assert(hdr.test.index != 200);
    }
}
control TestEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control TestDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); packet.emit(hdr.test); }
}
V1Switch(TestParser(), Check(), TestIngress(), TestEgress(), Update(), TestDeparser()) main;
