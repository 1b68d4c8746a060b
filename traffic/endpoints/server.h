/* Parameter servers: they sum arriving packets, each worker once, and answer with results.
 *
 * For each fragment a server keeps the 64-bit sum and the set of workers that it covers. A packet that covers a proper
 * superset replaces the sum. Any other packet that overlaps the sum is discarded: the missing workers send their
 * gradients again, one by one. An aggregator that keeps sums would answer each of these with the same sum again, so in
 * this case the server asks the missing workers to send past all slots. A server that stands by for a root in the
 * network, or that has been restarted, asks all workers for the missing fragments.
 */

struct answer {
    u32 tree, fragment, stream; /* `stream`: of the only worker that gets it, or NONE */
    u8 kind, part, wide; /* `part` of a notice: the fragment is to be sent again along the tree */
};

static u64 *covered_by(const struct endpoints *all, const struct tree *tree, const struct sum *sum) {
    return all->covered + (u64)(sum - all->sums) * all->words;
}

static int has(const u64 *set, u32 worker) { return set[worker / 64] >> worker % 64 & 1; }

static int includes(const u64 *set, const u64 *other, u32 words) { /* whether `set` has all of `other` */
    for (u32 i = 0; i < words; i++)
        if (other[i] & ~set[i])
            return 0;
    return 1;
}

static int meets(const u64 *set, const u64 *other, u32 words) {
    for (u32 i = 0; i < words; i++)
        if (other[i] & set[i])
            return 1;
    return 0;
}

/* The sum of a fragment; 0 for a fragment so old that its memory has another one. */
static struct sum *sum_of(const struct endpoints *all, const struct tree *tree, u32 fragment) {
    struct sum *sum = &all->sums[tree->first_row + (fragment & tree->mask)];
    if (sum->fragment > fragment)
        return 0;
    if (sum->fragment < fragment) {
        memset(sum, 0, sizeof *sum);
        memset(covered_by(all, tree, sum), 0, all->words * sizeof(u64));
        sum->fragment = fragment, sum->asked_at = -NEVER;
    }
    return sum;
}

static void server_begin(struct endpoints *all, struct tree *tree) {
    for (u64 i = 0; i <= tree->mask; i++)
        all->sums[tree->first_row + i].fragment = all->expected[tree->first_row + i].fragment = -1;
    tree->asks = tree->stands_by, tree->open = 0, tree->last = tree->before = NONE;
}

/* Whether no worker can have sent a fragment yet, because its windows begin before: a forged one would take the memory of
 * another. A server that does not sum all fragments, or has forgotten some, does not know. */
static int is_beyond(const struct endpoints *all, struct tree *tree, u32 fragment) {
    const struct sum *sums = &all->sums[tree->first_row];
    for (; tree->open < tree->count; tree->open++)
        if (sums[tree->open & tree->mask].fragment != tree->open || !sums[tree->open & tree->mask].done)
            break;
    return !tree->asks && fragment > tree->open + tree->mask;
}

/* Forget all sums and waiting answers of the servers on a host, as a crash does. */
void endpoints_restart(struct endpoints *all, u32 host) {
    for (u32 i = 0; i < all->tree_count; i++)
        if (all->trees[i].server == host) {
            for (u64 row = 0; row <= all->trees[i].mask; row++)
                all->sums[all->trees[i].first_row + row].fragment = -1;
            all->trees[i].asks = 1;
        }
    all->hosts[host].pending_count = 0;
}

/* ---- answers ---- */

static void send_answer(struct endpoints *all, struct host *host, struct answer answer) {
    struct tree *tree = &all->trees[answer.tree];
    struct sum *sum = sum_of(all, tree, answer.fragment);
    const struct stream *stream = answer.stream == NONE ? 0 : &all->streams[answer.stream];
    u32 seq = tree->first_seq + answer.fragment;
    u8 frame[HEAD_BYTES + 4 * VALUES];
    if (!sum)
        return;
    if (answer.kind == NOTICE)
        memcpy(frame, stream ? stream->ask : tree->notice, HEAD_BYTES);
    else
        memcpy(frame, stream ? stream->result : tree->result, HEAD_BYTES);
    put32(frame + AT_SEQ, seq);
    put32(frame + AT_SLOT, slot_of(tree, seq));
    if (answer.kind == NOTICE && answer.part)
        frame[AT_FLAGS] |= PARTIAL, frame[AT_WORKERS] = frame[AT_WORKERS + 1] = 0;
    if (answer.kind == RESULT) {
        if (tree->reach && !stream && !answer.wide && !sum->answered)
            name_sent_before(frame, answer.fragment, &tree->last, &tree->before), sum->answered = 1;
        frame[AT_PART] = answer.part;
        frame[AT_FLAGS] |= (answer.wide ? OVERFLOW : 0) | (sum->marked ? ECN : 0);
        for (u32 i = 0; i < VALUES; i++)
            put32(frame + HEAD_BYTES + 4 * i, (u32)(answer.part ? sum->sums[i] >> 32 : sum->sums[i]));
    }
    give(all, host, frame, answer.kind == NOTICE ? HEAD_BYTES : sizeof frame);
}

/* Send an answer at once, or when the host can send again. */
static void answer(struct endpoints *all, struct answer answer, s64 now) {
    struct host *host = &all->hosts[all->trees[answer.tree].server];
    if (!host->blocked && !is_silent(host, now) && !host->pending_count) {
        send_answer(all, host, answer);
        return;
    }
    if (host->pending_count == host->pending_room) {
        host->pending_room = 2 * host->pending_room + 64;
        host->pending = (u64)realloc((void *)host->pending, host->pending_room * sizeof answer);
        if (!host->pending)
            abort();
    }
    ((struct answer *)host->pending)[host->pending_count++] = answer;
}

static void answer_pending(struct endpoints *all, struct host *host, s64 now) {
    struct answer *pending = (struct answer *)host->pending;
    u64 done = 0;
    for (; done < host->pending_count && !host->blocked && !is_silent(host, now); done++)
        send_answer(all, host, pending[done]);
    host->pending_count -= done;
    if (done && host->pending_count)
        memmove(pending, pending + done, host->pending_count * sizeof *pending);
}

/* Answer with the result: one packet, or two for a sum that needs more than 32 bits. */
static void answer_result(struct endpoints *all, const struct tree *tree, const struct sum *sum, u32 stream, s64 now) {
    u8 wide = 0;
    for (u32 i = 0; i < VALUES; i++)
        wide |= sum->sums[i] != (s32)sum->sums[i];
    for (u8 part = 0; part <= wide; part++)
        answer(all, (struct answer){(u32)(tree - all->trees), (u32)sum->fragment, stream, RESULT, part, wide}, now);
}

/* A sum is complete: one result for all workers, which the network copies. A server that stands by for a root in the
 * network sends one to each worker. */
static void finish(struct endpoints *all, const struct tree *tree, struct sum *sum, s64 now) {
    sum->done = 1, sum->asked_at = -NEVER;
    if (!tree->stands_by)
        answer_result(all, tree, sum, NONE, now);
    for (u32 i = 0; tree->stands_by && i < tree->crowd; i++)
        answer_result(all, tree, sum, all->workers[tree->first_worker + i], now);
}

/* Ask the workers that a sum lacks to send directly, past all slots. */
static void ask(struct endpoints *all, const struct tree *tree, struct sum *sum, s64 now) {
    const u64 *covered = covered_by(all, tree, sum);
    if (sum->asked_at > now - all->ask_again)
        return;
    sum->asked_at = now;
    for (u32 i = 0; i < tree->crowd; i++) {
        u32 stream = all->workers[tree->first_worker + i], worker = all->streams[stream].worker;
        if (!has(covered, worker))
            answer(all, (struct answer){(u32)(tree - all->trees), (u32)sum->fragment, stream, NOTICE, 0, 0}, now);
    }
}

/* ---- repairs, where aggregators ask for what they lack ---- */

/* Ask a worker below a label for a fragment: what it sends makes the aggregators above it send their sums again. */
static void request(struct endpoints *all, struct tree *tree, const struct label *label, u32 fragment, s64 now) {
    u32 first = spread(tree->key, fragment);
    for (u32 at = 0; at < tree->crowd; at++) {
        u32 stream = all->workers[tree->first_worker + (first + at) % tree->crowd], worker = all->streams[stream].worker;
        if (has(all->sets + label->set, worker)) {
            answer(all, (struct answer){(u32)(tree - all->trees), fragment, stream, NOTICE, 1, 0}, now);
            return;
        }
    }
}

/* Ask a label for a fragment that has not come; returns whether it has not. */
static int look_for(struct endpoints *all, struct tree *tree, const struct label *label, u32 fragment, s64 now) {
    struct sum *sum = fragment < tree->count && !is_beyond(all, tree, fragment) ? sum_of(all, tree, fragment) : 0;
    if (!sum || sum->done || includes(covered_by(all, tree, sum), all->sets + label->set, all->words))
        return 0;
    request(all, tree, label, fragment, now);
    return 1;
}

/* A packet of a label names the two that it has sent before, and what it sent earlier must have come too. `ina.p4` looks
 * as far back in aggregators. */
static void look_back(struct endpoints *all, struct tree *tree, const struct label *label, const u8 *frame, u32 fragment,
                      s64 now) {
    u32 last = get16(frame + AT_BITMAP), before = get16(frame + AT_BITMAP + 2);
    u32 lag = (tree->reach / 32 + 1) * (2 + tree->height);
    int missing = last && look_for(all, tree, label, fragment + SENT_BEFORE - last, now);
    if (missing && before)
        look_for(all, tree, label, fragment + SENT_BEFORE - before, now);
    if (!missing && !(frame[AT_FLAGS] & RETRANSMITTED))
        look_for(all, tree, label, fragment - lag, now);
}

/* A child misses a result. One that has just been sent again to all workers is on its way. */
static void take_ask(struct endpoints *all, struct tree *tree, const struct label *label, struct sum *sum, s64 now) {
    s64 just = all->streams[all->workers[tree->first_worker]].interval * (tree->reach / 32);
    if (!sum->done && !includes(covered_by(all, tree, sum), all->sets + label->set, all->words))
        request(all, tree, label, (u32)sum->fragment, now);
    if (!sum->done || (label->stream == NONE && sum->asked_at > now - just))
        return;
    sum->asked_at = now;
    answer_result(all, tree, sum, label->stream, now);
}

/* ---- sums ---- */

/* The workers that a packet covers: those of its label, or of a partial sum's bitmap, which `room` has room for. */
static const u64 *members_of(const struct endpoints *all, const struct label *label, const u8 *frame, u64 *room) {
    u64 bitmap = get64(frame + AT_BITMAP);
    if (!(frame[AT_FLAGS] & PARTIAL))
        return all->sets + label->set;
    memset(room, 0, all->words * sizeof *room);
    for (u32 bit = 0; bit < label->summands && bit < 64; bit++)
        for (u32 i = 0; bitmap >> bit & 1 && i < all->words; i++)
            room[i] |= all->sets[all->summands[label->first_summand + bit] + i];
    return room;
}

static u32 size_of(const u64 *set, u32 words) {
    u32 size = 0;
    for (u32 i = 0; i < words; i++)
        size += __builtin_popcountll(set[i]);
    return size;
}

static void add(struct sum *sum, const u8 *values) {
    for (u32 i = 0; i < VALUES; i++)
        sum->sums[i] += (s32)get32(values + 4 * i);
}

/* Add a packet that covers `members` to a sum, unless they overlap; returns whether it was added. */
static int add_up(const struct endpoints *all, struct sum *sum, u64 *covered, const u64 *members, const u8 *values) {
    u32 words = all->words;
    if (meets(covered, members, words)) {
        if (!includes(members, covered, words) || includes(covered, members, words))
            return 0;
        memset(covered, 0, words * sizeof *covered); /* it has all that the sum has, and more */
        memset(sum->sums, 0, sizeof sum->sums);
    }
    for (u32 i = 0; i < words; i++)
        covered[i] |= members[i];
    add(sum, values);
    return 1;
}

static void server_take(struct endpoints *all, struct tree *tree, const struct label *label, struct sum *sum,
                        const u8 *frame, s64 now) {
    u32 flags = frame[AT_FLAGS], fragment = (u32)sum->fragment, words = all->words;
    u64 room[words], *covered = covered_by(all, tree, sum);
    const u64 *members = members_of(all, label, frame, room), *everyone = all->sets + tree->everyone;
    int overflown = !sum->done && flags & OVERFLOW && label->stream == NONE;
    /* an aggregator asks for its sum again, and not for the result */
    int repairs = tree->reach && !(flags & PARTIAL) && get32(frame + AT_BITMAP + 4);
    if (sum->done && flags & RETRANSMITTED && !repairs) /* to the worker that asked, or to all if an aggregator's packet hides it */
        answer_result(all, tree, sum, label->stream, now);
    if (overflown) {
        tree->notices++;
        answer(all, (struct answer){(u32)(tree - all->trees), fragment, NONE, NOTICE, 0, 0}, now);
    }
    /* A packet that covers no worker, such as a partial sum with an empty bitmap, is forged. */
    if (!sum->done && !overflown && meets(members, members, words)) {
        is_miscounted(tree, frame, fragment, flags & PARTIAL ? size_of(members, words) : label->size);
        if (!add_up(all, sum, covered, members, frame + HEAD_BYTES))
            tree->discarded++;
        else if (includes(covered, everyone, words))
            finish(all, tree, sum, now);
    } else
        tree->discarded++;
    if (tree->reach && !(flags & (PARTIAL | DIRECT)))
        look_back(all, tree, label, frame, fragment, now);
    int clashes = tree->hides && meets(covered, members, words) && !includes(covered, members, words);
    if (!sum->done && (clashes || (tree->asks && flags & DIRECT)))
        ask(all, tree, sum, now);
}

/* Take a gradient; returns 0 for a packet with a label that its tree does not have, or at another host. */
static int server_receive(struct endpoints *all, struct tree *tree, u32 host, const u8 *frame, s64 now) {
    u32 number = get16(frame + AT_LABEL), fragment = get32(frame + AT_SEQ) - tree->first_seq;
    const struct label *label = &all->labels[tree->first_label + number];
    if (tree->server != host || number >= tree->labels || !label->size)
        return 0;
    tree->ingress_bytes += frame[AT_KIND] == QUESTION ? HEAD_BYTES : HEAD_BYTES + 4 * VALUES;
    tree->last_arrival_at = now;
    if (fragment >= tree->count || is_beyond(all, tree, fragment)) /* a late copy of the last iteration, or forged */
        return 1;
    struct sum *sum = sum_of(all, tree, fragment);
    if (!sum) /* a late copy of a fragment that all workers have */
        return 1;
    if (frame[AT_KIND] == QUESTION) {
        take_ask(all, tree, label, sum, now);
        return 1;
    }
    sum->marked |= frame[AT_FLAGS] & ECN ? 1 : 0;
    server_take(all, tree, label, sum, frame, now);
    return 1;
}
