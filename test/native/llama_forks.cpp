// Models that cannot be cut back anywhere: sliding window, hybrid, recurrent. Forked, copied, moved
// to RAM and cut back they go on as if nothing had been, to the bit in streams; and what agents do
// computes hardly more than what is new.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "core/scheduler.h"
#include "llama/llama_backend.h"
#include "model_kinds.h"
#include "recording_backend.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int32_t kPrompt = 150;

std::unique_ptr<LlamaBackend> make_backend(CacheLayout layout, std::int32_t slots = 4,
                                           std::int32_t cells = 1024) {
    auto outcome = LlamaBackend::create(model, {.layout = layout,
                                                .slot_count = slots,
                                                .cells_per_sequence = cells,
                                                .cells_total = std::int64_t{slots} * cells,
                                                .max_rows = 256,
                                                .micro_batch_rows = 256});
    if (!outcome.ok()) check::fail(__FILE__, __LINE__, outcome.error().message);
    return std::move(outcome.value());
}

// --- the backend ---

struct Slots {
    CacheLayout layout;
    std::unique_ptr<LlamaBackend> backend = make_backend(layout);

    std::vector<float> decode(SlotId slot, std::int32_t seed, std::int32_t from, std::int32_t to) {
        std::vector<float> last;
        while (from < to) {
            std::vector<BatchRow> rows;
            const std::int32_t end = std::min(to, from + 256);
            for (; from < end; ++from)
                rows.push_back({word(seed, from), from, slot, from + 1 == end});
            if (backend->decode(rows) != DecodeStatus::kOk)
                check::fail(__FILE__, __LINE__, backend->last_error());
            const auto logits = backend->logits(rows.size() - 1);
            last.assign(logits.begin(), logits.end());
        }
        return last;
    }
};

// What follows the prompt of a seed when nothing was ever shared or taken back.
std::vector<float> fresh(CacheLayout layout, std::int32_t seed) {
    Slots slots{layout};
    slots.decode(0, seed, 0, kPrompt);
    return slots.decode(0, seed, kPrompt, kPrompt + 9);
}

// --- the engine ---

struct Engine {
    std::unique_ptr<LlamaBackend> backend;
    RecordingBackend recording;
    Scheduler scheduler;
    Milliseconds now = 0;
    SequenceId last = 0;
    std::map<SequenceId, std::vector<Token>> sampled = {};

    explicit Engine(CacheLayout layout, std::int32_t slots = 10)
        : backend(make_backend(layout, slots, 3072)),
          recording(*backend),
          scheduler({.parallel = 8, .step_token_budget = 256, .ram_limit = std::int64_t{1} << 30},
                    recording) {}

    SequenceId submit(const std::vector<Token>& prompt, std::vector<std::int32_t> marks = {},
                      std::int32_t tokens = 8, float temperature = 0.0f) {
        using HoldAtEnd = PauseTriggers::HoldAtEnd;
        scheduler.submit({.id = ++last,
                          .prompt = prompt,
                          .sampling = {.temperature = temperature, .seed = 7, .ignores_end = true},
                          .limits = {.max_tokens = tokens},
                          .pause = {.hold_at_end = HoldAtEnd::kAlways},
                          .marks = std::move(marks)});
        return last;
    }
    void run() {
        while (scheduler.step(now++)) {
            const std::string wrong = scheduler.check_integrity();
            if (!wrong.empty()) check::fail(__FILE__, __LINE__, wrong);
            for (const Event& event : scheduler.take_events().events) {
                CHECK(event.kind != EventKind::kFailed);
                auto& tokens = sampled[event.id];
                tokens.insert(tokens.end(), event.tokens.begin(), event.tokens.end());
            }
        }
    }
    std::int64_t rows() const { return scheduler.stats().prefilled_tokens; }
    const std::vector<float>& logits_behind(const std::vector<Token>& prompt) const {
        return recording.records().at(prompt);
    }
};

}  // namespace

TEST(a_slot_is_cut_back_to_its_fork) {
    for_each_kind([](CacheLayout layout) {
        const auto expected = fresh(layout, 1);
        const auto other = fresh(layout, 2);
        Slots slots{layout};
        slots.decode(0, 1, 0, kPrompt);
        const SavedCells fork = slots.backend->fork(0);
        CHECK_EQ(fork.size(), slots.backend->fork_size(0));
        CHECK_EQ(fork.length(), kPrompt);
        std::printf("    a fork has %zu bytes, the slot %zu\n", fork.size(),
                    slots.backend->saved_size(0));
        // Far beyond a window, and beside another slot.
        slots.decode(1, 2, 0, kPrompt + 600);
        slots.decode(0, 2, kPrompt, kPrompt + 600);
        CHECK(!slots.backend->truncate(0, kPrompt));
        for (int time = 0; time < 2; ++time) {
            CHECK(slots.backend->cut_back(0, fork));
            expect_equal(layout, slots.decode(0, 1, kPrompt, kPrompt + 9), expected, other);
        }
        slots.decode(1, 2, kPrompt + 600, kPrompt + 610);
    });
}

TEST(a_copy_and_what_comes_back_from_ram_are_cut_back_too) {
    for_each_kind([](CacheLayout layout) {
        const auto expected = fresh(layout, 1);
        const auto other = fresh(layout, 2);
        Slots slots{layout};
        slots.decode(0, 1, 0, kPrompt);
        const SavedCells fork = slots.backend->fork(0);
        slots.decode(0, 2, kPrompt, kPrompt + 400);
        CHECK(!slots.backend->copy_prefix(0, 1, kPrompt));
        CHECK(slots.backend->copy_prefix(0, 1, kPrompt + 400));
        CHECK(slots.backend->cut_back(1, fork));
        expect_equal(layout, slots.decode(1, 1, kPrompt, kPrompt + 9), expected, other);
        const SavedCells saved = slots.backend->save(0);
        const auto onwards = slots.decode(0, 2, kPrompt + 400, kPrompt + 409);
        CHECK(slots.backend->truncate(0, 0));
        CHECK(slots.backend->restore(2, saved));
        const auto again = slots.decode(2, 2, kPrompt + 400, kPrompt + 409);
        expect_equal(layout, again, onwards, other);
        CHECK(slots.backend->cut_back(2, fork));
        expect_equal(layout, slots.decode(2, 1, kPrompt, kPrompt + 9), expected, other);
    });
}

// Eight slots with windows of their own would take more cells than there are.
TEST(a_small_pool_keeps_no_forks_of_windows) {
    for_each_kind([](CacheLayout layout) {
        if (layout == CacheLayout::kStreams || model->shape().sliding_window == 0) return;
        const std::int32_t window = model->shape().sliding_window;
        auto outcome = LlamaBackend::create(model, {.layout = layout,
                                                    .slot_count = 16,
                                                    .cells_per_sequence = 512,
                                                    .cells_total = 512,
                                                    .max_rows = 64,
                                                    .micro_batch_rows = 64});
        CHECK(outcome.ok());
        Slots slots{layout, std::move(outcome.value())};
        slots.decode(0, 1, 0, std::min(window, 100));
        CHECK(slots.backend->fork(0).empty());
        for (SlotId slot = 1; slot < 16; ++slot) {
            CHECK(slots.backend->copy_prefix(0, slot, std::min(window, 100)));
            slots.decode(slot, slot, std::min(window, 100), std::min(window, 100) + 20);
        }
    });
}

TEST(what_is_no_fork_of_the_slot_leaves_it_empty) {
    for_each_kind([](CacheLayout layout) {
        Slots slots{layout};
        slots.decode(0, 1, 0, kPrompt);
        const SavedCells fork = slots.backend->fork(0);
        slots.decode(1, 1, 0, 20);
        const bool stands_alone = slots.backend->shape().forks_stand_alone;
        CHECK_EQ(slots.backend->cut_back(1, fork), stands_alone);
        CHECK(!slots.backend->cut_back(9, fork));
        CHECK(!slots.backend->cut_back(0, SavedCells()));
        SavedCells half(fork.size() / 2, kPrompt);
        std::ranges::copy(fork.page(0).first(half.size()), half.page(0).begin());
        CHECK(!slots.backend->cut_back(0, half));
        slots.decode(0, 1, 0, 10);
        CHECK(slots.backend->fork(3).empty());
    });
}

// The prompt is computed up to the mark, as it is where it was forked there. Behind a window that
// was moved a draw on a device may fall on the token beside it.
TEST(forked_generations_give_the_same_tokens) {
    for_each_kind([](CacheLayout layout) {
        for (const float temperature : {0.0f, 0.8f}) {
            const auto shared = words(1, 200);
            const auto prompt = joined(shared, words(3, 60));
            Engine alone(layout);
            const SequenceId expected = alone.submit(prompt, {200}, 24, temperature);
            alone.run();
            Engine forked(layout);
            const auto another = joined(shared, words(2, 300));
            forked.submit(another, {200});
            forked.run();
            const std::int64_t before = forked.rows();
            const SequenceId actual = forked.submit(prompt, {200}, 24, temperature);
            forked.run();
            CHECK_EQ(forked.rows() - before, 60);
            expect_equal(layout, forked.logits_behind(prompt), alone.logits_behind(prompt),
                         forked.logits_behind(another));
            const bool moves = model->shape().sliding_window > 0 && test_gpu_layers() > 0;
            if (layout == CacheLayout::kStreams && !(moves && temperature > 0.0f))
                CHECK(forked.sampled.at(actual) == alone.sampled.at(expected));
        }
    });
}

TEST(agents_compute_what_they_share_once) {
    for_each_kind([](CacheLayout layout) {
        Engine engine(layout);
        for (std::int32_t agent = 0; agent < 8; ++agent)
            engine.submit(joined(words(1, 1500), words(10 + agent, 40)), {1500});
        engine.run();
        std::printf("    8 agents, 1,500 tokens shared, 40 of their own: %lld rows\n",
                    static_cast<long long>(engine.rows()));
        CHECK_EQ(engine.rows(), 1500 + 8 * 40);
    });
}

TEST(the_same_prompt_again_computes_few_rows) {
    for_each_kind([](CacheLayout layout) {
        Engine engine(layout);
        const auto prompt = words(1, 700);
        engine.submit(prompt);
        engine.run();
        engine.submit(prompt);
        engine.run();
        const std::int64_t again = engine.rows() - 700;
        const auto another = words(5, 700);
        for (int choice = 0; choice < 4; ++choice)
            engine.submit(another);
        engine.run();
        const std::int64_t four = engine.rows() - 2 * 700 - again;
        std::printf("    regenerate: %lld rows, n = 4: %lld more than one\n",
                    static_cast<long long>(again), static_cast<long long>(four));
        CHECK(again <= 64 && four <= 64);
    });
}

// Results are guessed wrongly before they come.
TEST(tool_rounds_compute_what_is_new) {
    for_each_kind([](CacheLayout layout) {
        Engine engine(layout);
        const SequenceId id = engine.submit(words(1, 600));
        std::int64_t fresh_rows = 600;
        for (std::int32_t round = 0; round < 8; ++round) {
            engine.scheduler.pause(id);
            engine.run();
            CHECK_EQ(engine.scheduler.stats().held, 1);
            const auto result = words(20 + round, 90);
            if (round % 4 == 3) {
                engine.scheduler.extend(
                    {.id = id, .tokens = joined(words(20 + round, 30), words(90, 30))});
                engine.run();
            }
            engine.scheduler.resume({.id = id, .tokens = result, .max_tokens = 8});
            fresh_rows += 90 + 1;
        }
        engine.run();
        const EngineStats stats = engine.scheduler.stats();
        const std::int64_t guessed = stats.discarded_tokens;
        std::printf("    8 rounds: %lld rows for %lld new ones, %lld guessed wrongly\n",
                    static_cast<long long>(stats.prefilled_tokens),
                    static_cast<long long>(fresh_rows), static_cast<long long>(guessed));
        CHECK(guessed > 0);
        CHECK(stats.prefilled_tokens <= fresh_rows + fresh_rows / 20);
    });
}

// A client that strips the thinking from the turns before: the prompt goes on otherwise behind the
// mark.
TEST(a_history_that_lost_text_restarts_at_the_mark) {
    for_each_kind([](CacheLayout layout) {
        Engine engine(layout);
        auto history = words(1, 400);
        std::int64_t rows = 0;
        for (std::int32_t turn = 0; turn < 4; ++turn) {
            const auto mark = static_cast<std::int32_t>(history.size());
            const std::int64_t before = engine.rows();
            engine.submit(joined(history, words(2, 4)), {mark}, 80);
            engine.run();
            if (turn > 0) rows += engine.rows() - before;
            // 30 of the 80 tokens come back, and the next question.
            history = joined(joined(history, words(30 + turn, 30)), words(40 + turn, 50));
        }
        std::printf("    3 turns of 84 tokens behind the mark: %lld rows\n",
                    static_cast<long long>(rows));
        CHECK(rows <= 3 * (84 + 64));
    });
}

int main(int count, char** arguments) {
    given.assign(arguments + 1, arguments + count);
    return check::run();
}
