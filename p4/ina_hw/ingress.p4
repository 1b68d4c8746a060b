// The ingress of `ina_hw`: the body of a control whose parameters, ports and counters are the shell's.
//
// In the order of the stages: who may come in, which slot, whose it is, which fragment it holds, which children are
// in it, its values. A packet of two passes goes through all of it twice, each time with half of its values and a
// slot for that half. Each half holds sums that are right by themselves; a packet leaves as a sum if both halves
// have the same children.

#include "slot.p4"

    // -- where packets may come from

    action admit() { meta.admitted = 1; }
    table admission {
        key = {
            INGRESS_PORT: exact;
            hdr.ina.kind: exact;
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { admit; NoAction; }
        default_action = NoAction();
        size = TABLE_SIZE;
    }

    // -- where they are summed

    action aggregate(bit<32> child, bit<32> full, bit<32> first_slot, bit<32> slots,
                     bit<16> own_label, bit<32> window, bit<8> policy) {
        meta.child = child;
        meta.full = full;
        meta.slot = (slot_t)first_slot + (slot_t)hdr.ina.slot;
        meta.room = slots |-| hdr.ina.slot;
        meta.own_label = own_label;
        meta.window = window;
        meta.policy = policy;
        meta.owner = hdr.ina.job ++ hdr.ina.tree;
    }
    table aggregation {
        key = {
            PIPELINE: exact @name("meta.pipeline");
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { aggregate; NoAction; }
        default_action = NoAction();
        size = TABLE_SIZE;
    }

    // -- where they go

    action drop(event_t event) {
        meta.outcome = event;
        DROP
    }
    action unroutable() { drop(EVENT_UNROUTABLE); }
    action send(bit<9> port) {
        EGRESS_PORT = port;
        meta.outcome = EVENT_SENT_UNICAST;
    }
    table forward {
        key = {
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
            hdr.ina.label: exact;
        }
        actions = { send; unroutable; }
        default_action = unroutable();
        size = TABLE_SIZE;
    }
    table ipv4_route {
        key = { hdr.ipv4.dst: exact; }
        actions = { send; unroutable; }
        default_action = unroutable();
        size = TABLE_SIZE;
    }
    action replicate(bit<16> group) {
        MULTICAST_GROUP = group;
        meta.outcome = EVENT_SENT_MULTICAST;
    }
    table results {
        key = {
            hdr.ina.job: exact;
            hdr.ina.tree: exact;
        }
        actions = { replicate; unroutable; }
        default_action = unroutable();
        size = TABLE_SIZE;
    }

    // -- what leaves

    action pass() { meta.way = WAY_LABEL; }
    action collide() {
        meta.happened = EVENT_COLLISION;
        hdr.ina.flags = hdr.ina.flags | FLAG_COLLISION;
        meta.way = WAY_LABEL;
    }
    action reach_all() {
        hdr.ina.flags = hdr.ina.flags & (FLAG_OVERFLOW | FLAG_ECN);
        meta.way = WAY_TREE;
    }
    action turn_back() {
        bit<48> mac = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        bit<32> address = hdr.ipv4.dst;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = address;
        meta.way = WAY_ADDRESS;
    }
    action notify() {
        meta.happened = EVENT_NOTIFIED;
        hdr.ina.kind = KIND_NOTICE;
        hdr.ina.flags = FLAG_ECN | FLAG_RETRANSMITTED;
        hdr.ina.label = 0;
        turn_back();
    }
    action become_sum(event_t event) {
        meta.happened = event;
        meta.summed = 1;
        hdr.ina.label = meta.own_label;
        hdr.ina.workers = WORKERS_NOT_COUNTED;
        hdr.ina.flags = hdr.ina.flags | (bit<8>)meta.marks;
        hdr.ina.bitmap = 0;
        meta.way = WAY_LABEL;
    }
    action be_partial() {
        hdr.ina.bitmap = (bit<64>)meta.after;
        hdr.ina.flags = hdr.ina.flags | FLAG_PARTIAL;
    }

    apply {
        BEFORE_INGRESS
        if (IS_GONE) {
            drop(GONE_BY);
        } else if (!hdr.ina.isValid()) {
            meta.way = WAY_ADDRESS;
        } else {
            if (meta.second == 0) {
                admission.apply();
            }
            aggregation.apply();
            LOCATE
            meta.oldest = hdr.ina.seq - meta.window;
            if (meta.admitted == 0) {
                REJECT
                drop(EVENT_REJECTED);
            } else if (hdr.ina.kind != KIND_GRADIENT) {
                // From the root: to every worker along the tree, or again to one that asked.
                if ((hdr.ina.flags & FLAG_RETRANSMITTED) == 0) {
                    meta.way = WAY_TREE;
                } else {
                    meta.way = WAY_ADDRESS;
                }
                if (hdr.ina.kind == KIND_RESULT && meta.room != 0) {
                    meta.asked = ASK_RELEASE;
                    release();
                }
            } else if ((hdr.ina.flags & FLAG_DIRECT) != 0) {
                meta.way = WAY_ADDRESS;
            } else if ((hdr.ina.flags & FLAG_OVERFLOW) != 0 && (meta.policy & POLICY_ROOT) != 0) {
                // A sum that left 32 bits is no result, but a notice to send its fragment to the PS.
                hdr.ina.kind = KIND_NOTICE;
                hdr.ina.label = meta.own_label;
                reach_all();
            } else if (meta.child == 0 || (hdr.ina.flags & (FLAG_PARTIAL | FLAG_OVERFLOW)) != 0) {
                pass();
            } else if (meta.room == 0) {
                REJECT
                drop(EVENT_REJECTED);
            } else if ((hdr.ina.flags & FLAG_RETRANSMITTED) != 0 && (meta.policy & POLICY_HOLD) == 0) {
                // What is sent again does not wait in a slot, if there is a PS to turn to.
                meta.asked = ASK_FIND;
                look();
            } else {
                meta.asked = ASK_JOIN;
                claim();
            }

            // Which fragment the slot holds.
            if (meta.asked == ASK_JOIN && meta.owner_before == 0) {
                begin();
            } else if (meta.asked == ASK_JOIN && meta.owner_before == meta.owner) {
                advance();
            } else if (meta.asked == ASK_FIND && meta.owner_before == meta.owner) {
                find();
            }

            // Which children are in it.
            if (meta.held == SLOT_FRESH) {
                set_bits();
                set_seen();
                set_marks();
            } else if (meta.held == SLOT_MINE) {
                join_bits();
                join_seen();
                join_marks();
            }
        }

        // What it is to its slot.
        if (meta.asked == ASK_RELEASE) {
            if (PASSES == 2 && meta.second == 0) {
                meta.again = 1;
            } else if (meta.owner_before == meta.owner) {
                meta.happened = EVENT_RELEASED;
            }
        } else if (meta.asked != ASK_NOTHING && meta.held == SLOT_BUSY) {
            if (meta.second == 1) {
                // Half of it is in a slot: it cannot go on by itself.
                meta.happened = EVENT_COLLISION;
                drop(EVENT_ABSORBED);
            } else if (meta.asked == ASK_FIND) {
                pass();
            } else if ((meta.policy & POLICY_NOTIFY) != 0) {
                notify();
            } else if ((meta.policy & POLICY_HOLD) != 0) {
                // Nobody starts a newer fragment here before all have this one's result.
                drop(EVENT_DUPLICATE);
            } else {
                collide();
            }
        } else if (meta.asked != ASK_NOTHING) {
            if (meta.seen == 0 || (meta.second == 1 && hdr.carried.is_new == 1)) {
                meta.is_new = 1;
            }
            if (meta.held == SLOT_FRESH && meta.owner_before != 0) {
                meta.reclaimed = 1;
            }
        }

        // What becomes of one that is in its slot.
        if (meta.asked != ASK_RELEASE && meta.held != SLOT_BUSY) {
            if (PASSES == 2 && meta.second == 0) {
                meta.again = 1;
                meta.summed = 1;
            } else if (meta.second == 1 && hdr.carried.bitmap != meta.after) {
                drop(EVENT_ABSORBED);
            } else if (meta.after == meta.full && meta.is_new == 1) {
                become_sum(EVENT_COMPLETED);
            } else if (meta.after == meta.full && (hdr.ina.flags & FLAG_RETRANSMITTED) != 0) {
                become_sum(EVENT_ANSWERED);
            } else if (meta.after != meta.full && meta.asked == ASK_FIND) {
                become_sum(EVENT_FLUSHED);
            } else if (meta.after != meta.full && meta.is_new == 1) {
                drop(EVENT_ABSORBED);
            } else {
                drop(EVENT_DUPLICATE);
            }
        }
        if (meta.happened == EVENT_FLUSHED) {
            be_partial();
        } else if (meta.happened == EVENT_COMPLETED && (meta.policy & POLICY_ROOT) != 0) {
            hdr.ina.kind = KIND_RESULT;
            reach_all();
        } else if (meta.happened == EVENT_ANSWERED && (meta.policy & POLICY_ROOT) != 0) {
            hdr.ina.kind = KIND_RESULT;
            turn_back();
        }

        if (meta.again == 1) {
            RECIRCULATE
        } else if (meta.way == WAY_ADDRESS) {
            ipv4_route.apply();
        } else if (meta.way == WAY_LABEL) {
            forward.apply();
        } else if (meta.way == WAY_TREE) {
            results.apply();
        }

        hdr.carried.setValid();
        hdr.carried.again = meta.again;
        hdr.carried.summed = meta.summed;
        hdr.carried.is_new = meta.is_new;
        hdr.carried.second = meta.second;
        hdr.carried.bitmap = meta.after;
        AFTER_INGRESS

        // Its values, last: nothing else waits for them, and they take the stages that are left.
        SUM_VALUES
    }
