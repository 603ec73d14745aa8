// Rows of the last decode are taken back where the cache cannot be cut anywhere else: what follows
// is what would have followed without them.
#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "check.h"
#include "core/scheduler.h"
#include "model_kinds.h"
#include "recording_backend.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int32_t kPrompt = 150;
constexpr std::int32_t kUndo = 8;
constexpr std::int32_t kText = 1, kWrong = 2;  // seeds

std::unique_ptr<LlamaBackend> make_backend(CacheLayout layout, std::int32_t undo_rows) {
    auto outcome = LlamaBackend::create(model, {.layout = layout,
                                                .slot_count = 6,
                                                .cells_per_sequence = 1024,
                                                .cells_total = 6 * 1024,
                                                .max_rows = 256,
                                                .micro_batch_rows = 256,
                                                .max_logit_rows = 64,
                                                .undo_rows = undo_rows});
    if (!outcome.ok()) check::fail(__FILE__, __LINE__, outcome.error().message);
    return std::move(outcome.value());
}

struct Slots {
    CacheLayout layout;
    std::unique_ptr<LlamaBackend> backend = make_backend(layout, kUndo);

    void add(std::vector<BatchRow>& rows, SlotId slot, std::int32_t seed, std::int32_t from,
             std::int32_t to) const {
        for (; from < to; ++from)
            rows.push_back({word(seed, from), from, slot, true});
    }
    std::vector<float> decode(const std::vector<BatchRow>& rows) {
        if (backend->decode(rows) != DecodeStatus::kOk)
            check::fail(__FILE__, __LINE__, backend->last_error());
        const auto logits = backend->logits(rows.size() - 1);
        return {logits.begin(), logits.end()};
    }
    std::vector<float> decode(SlotId slot, std::int32_t seed, std::int32_t from, std::int32_t to) {
        std::vector<BatchRow> rows;
        add(rows, slot, seed, from, to);
        for (std::size_t i = 0; i + 1 < rows.size(); ++i)
            rows[i].wants_logits = false;
        return decode(rows);
    }
    // The prompt, and three rows behind it, with five others that are taken back.
    void read_and_undo(SlotId slot) {
        decode(slot, kText, 0, kPrompt);
        std::vector<BatchRow> rows;
        add(rows, slot, kText, kPrompt, kPrompt + 3);
        add(rows, slot, kWrong, kPrompt + 3, kPrompt + 8);
        decode(rows);
        CHECK(backend->truncate(slot, kPrompt + 3));
    }
    std::vector<float> go_on(SlotId slot) { return decode(slot, kText, kPrompt + 3, kPrompt + 9); }
};

// Without rows that are taken back.
std::vector<float> expected(CacheLayout layout, std::int32_t seed) {
    Slots slots{layout};
    slots.decode(0, seed, 0, kPrompt);
    slots.decode(0, seed, kPrompt, kPrompt + 3);
    return slots.decode(0, seed, kPrompt + 3, kPrompt + 9);
}

// A product of eight rows rounds otherwise than one of three, far less than another text would be.
void expect_near(const std::vector<float>& actual, const std::vector<float>& right,
                 const std::vector<float>& other) {
    CHECK(distance(actual, right) * 20 < distance(actual, other));
}

// llama.cpp keeps no states of Mamba's layers.
bool undoes(CacheLayout layout) {
    const std::int32_t rows = make_backend(layout, kUndo)->shape().undo_rows;
    CHECK_EQ(rows, model->info().architecture == "mamba2" ? 0 : kUndo);
    return rows > 0;
}

}  // namespace

TEST(what_follows_is_as_without_them) {
    for_each_kind([](CacheLayout layout) {
        if (!undoes(layout)) return;
        Slots slots{layout};
        slots.read_and_undo(1);
        expect_near(slots.go_on(1), expected(layout, kText), expected(layout, kWrong));
    });
}

// Of eight rows, of three and of one, in one call: none of their passes splits what is taken back.
TEST(slots_beside_each_other_take_back_what_is_theirs) {
    for_each_kind([](CacheLayout layout) {
        if (!undoes(layout)) return;
        Slots slots{layout};
        for (const SlotId slot : {0, 1, 2})
            slots.decode(slot, kText, 0, kPrompt);
        std::vector<BatchRow> rows;
        slots.add(rows, 0, kText, kPrompt, kPrompt + 3);
        slots.add(rows, 0, kWrong, kPrompt + 3, kPrompt + 8);
        slots.add(rows, 1, kText, kPrompt, kPrompt + 1);
        slots.add(rows, 1, kWrong, kPrompt + 1, kPrompt + 3);
        slots.add(rows, 2, kText, kPrompt, kPrompt + 1);
        slots.decode(rows);
        CHECK(slots.backend->truncate(0, kPrompt + 3));
        CHECK(slots.backend->truncate(1, kPrompt + 1));
        rows.clear();
        slots.add(rows, 1, kText, kPrompt + 1, kPrompt + 3);
        slots.add(rows, 2, kText, kPrompt + 1, kPrompt + 3);
        slots.decode(rows);
        for (const SlotId slot : {0, 1, 2})
            expect_near(slots.go_on(slot), expected(layout, kText), expected(layout, kWrong));
    });
}

TEST(what_is_left_is_copied_saved_and_forked) {
    for_each_kind([](CacheLayout layout) {
        if (!undoes(layout)) return;
        Slots slots{layout};
        LlamaBackend& backend = *slots.backend;
        slots.read_and_undo(1);
        CHECK(backend.copy_prefix(1, 2, kPrompt + 3));
        const SavedCells saved = backend.save(1);
        CHECK(backend.restore(3, saved));
        const SavedCells fork = backend.fork(1);
        slots.decode(1, kWrong, kPrompt + 3, kPrompt + 9);
        CHECK(backend.cut_back(1, fork));
        for (const SlotId slot : {1, 2, 3})
            expect_near(slots.go_on(slot), expected(layout, kText), expected(layout, kWrong));
    });
}

// Of recurrent layers no more than the last decode added, its first row excepted, and once.
TEST(nothing_else_is_taken_back) {
    for_each_kind([](CacheLayout layout) {
        Slots slots{layout};
        LlamaBackend& backend = *slots.backend;
        slots.decode(0, kText, 0, kPrompt);
        slots.decode(0, kText, kPrompt, kPrompt + 3);
        if (!model->info().is_recurrent) return;
        CHECK(!backend.truncate(0, kPrompt));
        slots.decode(1, kText, 0, kPrompt);
        CHECK(!backend.truncate(0, kPrompt + 2));
        CHECK(!backend.truncate(1, kPrompt - kUndo - 1));
        CHECK_EQ(backend.truncate(1, kPrompt - kUndo), backend.shape().undo_rows > 0);
        CHECK(!backend.truncate(1, kPrompt - kUndo - 1));
        expect_near(slots.go_on(0), expected(layout, kText), expected(layout, kWrong));
        backend.truncate(1, 0);
        slots.decode(1, kText, 0, kPrompt);
        slots.decode(1, kText, kPrompt, kPrompt + 3);
        expect_near(slots.go_on(1), expected(layout, kText), expected(layout, kWrong));
    });
}

// What a fork brings back is no row of the last decode, whose states are another text's.
TEST(nothing_is_taken_back_from_a_fork) {
    for_each_kind([](CacheLayout layout) {
        if (!model->info().is_recurrent) return;
        Slots slots{layout};
        LlamaBackend& backend = *slots.backend;
        slots.decode(0, kText, 0, kPrompt);
        const SavedCells fork = backend.fork(0);
        slots.decode(0, kWrong, kPrompt, kPrompt + 4);
        CHECK(backend.cut_back(0, fork));
        CHECK(!backend.truncate(0, kPrompt - 2));
        slots.decode(0, kText, kPrompt, kPrompt + 3);
        expect_near(slots.go_on(0), expected(layout, kText), expected(layout, kWrong));
    });
}

namespace {

struct Answer {
    std::vector<Token> tokens;
    std::vector<float> logits;  // behind the last row
    EngineStats stats;
};

// What a script says, which copies the prompt's words and leaves them, for `agents` at once.
Answer answer(CacheLayout layout, std::int32_t agents, std::int32_t draft_limit) {
    const auto backend = make_backend(layout, draft_limit);
    RecordingBackend recording(*backend);
    Scheduler scheduler({.parallel = 4,
                         .step_token_budget = 256,
                         .ram_limit = std::int64_t{1} << 30,
                         .draft_limit = draft_limit},
                        recording);
    const auto prompt = words(kText, kPrompt);
    std::vector<Token> script;
    for (std::int32_t at = 0; at < kPrompt; at += 30) {
        script.insert(script.end(), prompt.begin() + at, prompt.begin() + at + 20);
        script.push_back(word(kWrong, at));
    }
    const auto size = static_cast<std::int32_t>(script.size());
    for (SequenceId id = 1; id <= static_cast<SequenceId>(agents); ++id)
        scheduler.submit({.id = id,
                          .prompt = prompt,
                          .sampling = {.ignores_end = true, .script = script},
                          .limits = {.max_tokens = size}});
    Answer answer;
    for (Milliseconds now = 0; scheduler.step(now); ++now) {
        scheduler.took(1.0);
        const std::string wrong = scheduler.check_integrity();
        if (!wrong.empty()) check::fail(__FILE__, __LINE__, wrong);
        for (const Event& event : scheduler.take_events().events) {
            CHECK(event.kind != EventKind::kFailed);
            if (event.id == 1)
                answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
        }
    }
    auto history = joined(prompt, script);
    history.pop_back();
    answer.logits = recording.records().at(history);
    answer.stats = scheduler.stats();
    CHECK(answer.tokens == script);
    return answer;
}

}  // namespace

TEST(drafts_change_nothing) {
    for_each_kind([](CacheLayout layout) {
        const bool drafts = undoes(layout);
        const auto other = expected(layout, kWrong);
        for (const std::int32_t agents : {1, 4}) {
            const Answer with = answer(layout, agents, kUndo), without = answer(layout, agents, 0);
            expect_near(with.logits, without.logits, other);
            CHECK_EQ(with.stats.recomputed_tokens, 0);
            CHECK_EQ(with.stats.accepted_rows > 40 * agents, drafts);
            CHECK_EQ(with.stats.drafted_rows > with.stats.accepted_rows, drafts);
            std::printf("    %d agents: %lld of %lld drafted rows accepted, %lld steps for %lld\n",
                        agents, static_cast<long long>(with.stats.accepted_rows),
                        static_cast<long long>(with.stats.drafted_rows),
                        static_cast<long long>(with.stats.steps),
                        static_cast<long long>(without.stats.steps));
        }
    });
}

int main(int count, char** arguments) {
    given.assign(arguments + 1, arguments + count);
    return check::run();
}
