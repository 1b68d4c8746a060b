// What every program of this folder begins with. Its packets are Ethernet and one header of its own.
#include <core.p4>
#include <v1model.p4>

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ethertype;
}
