// MTP layers draft: what they start from is that of their rows whatever ran beside and whatever was
// copied, cut and restored; and what is said is what is said without them.
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "check.h"
#include "core/draft_model.h"
#include "core/scheduler.h"
#include "llama/mtp_head.h"
#include "llama/mtp_layers.h"
#include "model_kinds.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

constexpr std::int32_t kPrompt = 90;
constexpr std::int32_t kUndo = 8;
constexpr std::int32_t kText = 1, kOther = 2;  // seeds

void for_each_layout(Kind kind, Body body) {
    const std::string path = RandomModel(kind, true).write();
    auto loaded = Model::load(
        {.path = path, .gpu_layers = test_gpu_layers(), .mtp_layers = true, .on_progress = {}});
    if (!loaded.ok()) check::fail(__FILE__, __LINE__, loaded.error().message);
    model = loaded.value();
    CHECK_EQ(mtp_problem(*model), "");
    for (const CacheLayout layout : {CacheLayout::kStreams, CacheLayout::kUnified}) {
        std::printf("  %s, %s\n", name_of(kind),
                    layout == CacheLayout::kStreams ? "streams" : "unified");
        body(layout);
    }
    model.reset();
}

void for_each_layout(Body body) {
    for (const Kind kind : {Kind::kDeltaNet, Kind::kDeltaNetWithExperts, Kind::kExperts})
        for_each_layout(kind, body);
}

std::unique_ptr<LlamaBackend> make_backend(CacheLayout layout, bool mtp_layers,
                                           std::int32_t slots = 6) {
    auto outcome = LlamaBackend::create(model, {.layout = layout,
                                                .slot_count = slots,
                                                .cells_per_sequence = 512,
                                                .cells_total = std::int64_t{slots} * 512,
                                                .max_rows = 256,
                                                .micro_batch_rows = 256,
                                                .max_logit_rows = 64,
                                                .undo_rows = mtp_layers ? 0 : kUndo,
                                                .keeps_states = !mtp_layers,
                                                .mtp_layers = mtp_layers});
    if (!outcome.ok()) check::fail(__FILE__, __LINE__, outcome.error().message);
    return std::move(outcome.value());
}

struct Slots {
    CacheLayout layout;
    std::unique_ptr<LlamaBackend> backend = make_backend(layout, false);
    std::unique_ptr<MtpHead> head =
        std::make_unique<MtpHead>(make_backend(layout, true), backend->hidden_states());

    static void add(std::vector<BatchRow>& rows, SlotId slot, std::int32_t seed, std::int32_t from,
                    std::int32_t to) {
        for (; from < to; ++from)
            rows.push_back({word(seed, from), from, slot, from + 1 == to});
    }
    void decode(const std::vector<BatchRow>& rows) {
        if (backend->decode(rows) != DecodeStatus::kOk)
            check::fail(__FILE__, __LINE__, backend->last_error());
    }
    void decode(SlotId slot, std::int32_t seed, std::int32_t from, std::int32_t to) {
        std::vector<BatchRow> rows;
        add(rows, slot, seed, from, to);
        decode(rows);
    }
    std::vector<float> state(SlotId slot, std::int32_t position) const {
        std::vector<float> state(static_cast<std::size_t>(backend->hidden_states()->width()));
        if (!backend->hidden_states()->read(slot, position, state)) return {};
        return state;
    }
    // What the head says behind the text of the slot, which it reads from `from` on.
    std::vector<float> read_in_head(SlotId slot, std::int32_t seed, std::int32_t from,
                                    std::int32_t to) {
        std::vector<BatchRow> rows;
        add(rows, slot, seed, from, to);
        CHECK(head->decode(rows) == DecodeStatus::kOk);
        const auto logits = head->logits(rows.size() - 1);
        return {logits.begin(), logits.end()};
    }
};

std::vector<std::vector<float>> expected_states(CacheLayout layout, std::int32_t seed) {
    Slots slots{layout};
    slots.decode(0, seed, 0, kPrompt);
    std::vector<std::vector<float>> states;
    for (std::int32_t at = 0; at < kPrompt; ++at)
        states.push_back(slots.state(0, at));
    return states;
}

// Another text's are a thousand times as far away.
void expect_states(const Slots& slots, SlotId slot, const std::vector<std::vector<float>>& states,
                   std::int32_t begin, std::int32_t end) {
    for (std::int32_t at = begin; at < end; ++at) {
        const auto state = slots.state(slot, at);
        CHECK_EQ(state.size(), states[static_cast<std::size_t>(at)].size());
        CHECK(distance(state, states[static_cast<std::size_t>(at)]) < 0.02f);
    }
    CHECK(begin == 0 || slots.state(slot, begin - 1).empty());
    CHECK(slots.state(slot, end).empty());
}

}  // namespace

TEST(states_are_those_of_their_rows_whatever_is_beside) {
    for_each_layout([](CacheLayout layout) {
        const auto text = expected_states(layout, kText), other = expected_states(layout, kOther);
        CHECK(distance(text[40], other[40]) > 0.5f);
        CHECK(distance(text[40], text[41]) > 0.5f);
        Slots slots{layout};
        // Unequal rows: of a prompt, of drafts and of one that goes on.
        std::vector<BatchRow> rows;
        Slots::add(rows, 0, kText, 0, 31);
        Slots::add(rows, 1, kOther, 0, 7);
        Slots::add(rows, 3, kText, 0, 60);
        slots.decode(rows);
        rows.clear();
        Slots::add(rows, 0, kText, 31, 32);
        Slots::add(rows, 1, kOther, 7, 16);
        Slots::add(rows, 2, kText, 0, kPrompt);
        Slots::add(rows, 3, kText, 60, 64);
        // Logits in the midst, as drafts have.
        for (BatchRow& row : rows)
            row.wants_logits = row.wants_logits || row.slot == 1 || row.slot == 3;
        slots.decode(rows);
        expect_states(slots, 0, text, 0, 32);
        expect_states(slots, 1, other, 0, 16);
        expect_states(slots, 2, text, 0, kPrompt);
        expect_states(slots, 3, text, 0, 64);
    });
}

TEST(states_follow_their_slot) {
    for_each_layout([](CacheLayout layout) {
        const auto text = expected_states(layout, kText);
        Slots slots{layout};
        LlamaBackend& backend = *slots.backend;
        slots.decode(0, kText, 0, 40);
        const SavedCells fork = backend.fork(0);
        const SavedCells saved = backend.save(0);
        CHECK_EQ(saved.size(), backend.saved_size(0));
        CHECK(backend.copy_prefix(0, 1, 40));
        // Pages are shared, and what is written is not.
        slots.decode(0, kOther, 40, 50);
        slots.decode(1, kText, 40, 50);
        expect_states(slots, 1, text, 0, 50);
        CHECK(distance(slots.state(0, 45), text[45]) > 0.5f);
        CHECK(backend.shape().partial_truncate ? backend.truncate(0, 40)
                                               : backend.cut_back(0, fork));
        slots.decode(0, kText, 40, 44);
        expect_states(slots, 0, text, 0, 44);
        CHECK(backend.truncate(0, 42));
        expect_states(slots, 0, text, 0, 42);
        CHECK(backend.restore(2, saved));
        slots.decode(2, kText, 40, 60);
        expect_states(slots, 2, text, 0, 60);
        // Beside another one, which has its beginning.
        const SavedCells beside = backend.save_beside(2, saved, 40);
        CHECK(backend.restore(4, beside));
        expect_states(slots, 4, text, 0, 60);
        CHECK(backend.truncate(1, 0));
        CHECK(slots.state(1, 0).empty());
    });
}

TEST(the_layers_read_what_is_there) {
    for_each_layout([](CacheLayout layout) {
        Slots slots{layout};
        slots.decode(0, kText, 0, kPrompt);
        slots.decode(1, kOther, 0, kPrompt);
        MtpHead& head = *slots.head;
        CHECK_EQ(head.readable(0).first, 1);
        CHECK_EQ(head.readable(0).end, kPrompt + 1);
        const auto expected = slots.read_in_head(0, kText, 1, kPrompt);
        const auto other = slots.read_in_head(1, kOther, 1, kPrompt);
        const auto near = [&](const std::vector<float>& actual) {
            return distance(actual, expected) * 20 < distance(actual, other);
        };
        // Each row starts from its token and from what came of the one before.
        const auto cells = make_backend(layout, true);
        std::vector<BatchRow> rows;
        std::vector<float> inputs;
        for (std::int32_t at = 1; at < kPrompt; ++at) {
            rows.push_back({word(kText, at), at - 1, 0, at + 1 == kPrompt});
            const auto state = slots.state(0, at - 1);
            inputs.insert(inputs.end(), state.begin(), state.end());
        }
        CHECK(cells->decode(rows, inputs) == DecodeStatus::kOk);
        const auto by_hand = cells->logits(rows.size() - 1);
        CHECK_EQ(distance({by_hand.begin(), by_hand.end()}, expected), 0.0f);
        CHECK_EQ(cells->state(rows.size() - 1).size(), slots.state(0, 0).size());
        // In pieces, after a cut, from a copy.
        slots.decode(2, kText, 0, kPrompt);
        slots.read_in_head(2, kText, 1, 30);
        slots.read_in_head(2, kText, 30, 50);
        CHECK(head.truncate(2, 40));
        CHECK(near(slots.read_in_head(2, kText, 40, kPrompt)));
        CHECK(slots.backend->copy_prefix(2, 3, kPrompt));
        CHECK(head.copy_prefix(2, 3, kPrompt - 1));
        CHECK(near(slots.read_in_head(3, kText, kPrompt - 1, kPrompt)));
        // Of what is lacking nothing can be read, of what follows all.
        slots.decode(4, kText, 0, 30);
        slots.backend->hidden_states()->lack(4, 30);
        slots.decode(4, kText, 30, kPrompt);
        CHECK_EQ(head.readable(4).first, 31);
        CHECK(near(slots.read_in_head(4, kText, 31, kPrompt)));
        CHECK(head.truncate(4, 50));
        CHECK(near(slots.read_in_head(4, kText, 50, kPrompt)));
        CHECK(head.truncate(4, 20));
        CHECK(near(slots.read_in_head(4, kText, 31, kPrompt)));
    });
}

// Rows whose logits are not wanted stand before it, of the same slot and of another.
TEST(what_the_layers_gave_is_that_of_the_slots_last_row) {
    for_each_layout([](CacheLayout layout) {
        const auto width = static_cast<std::size_t>(model->info().embedding_size);
        const auto inputs_for = [&](const std::vector<BatchRow>& rows) {
            return std::vector<float>(rows.size() * width, 0.25f);
        };
        const auto alone = make_backend(layout, true), together = make_backend(layout, true);
        std::map<SlotId, std::vector<std::vector<float>>> given;
        const auto give = [&](SlotId slot, std::int32_t seed, std::int32_t count) {
            for (std::int32_t at = 0; at < count; ++at) {
                const std::vector<BatchRow> row{{word(seed, at), at, slot, true}};
                auto inputs = inputs_for(row);
                CHECK(alone->decode(row, inputs) == DecodeStatus::kOk);
                const auto state = alone->state(0);
                given[slot].emplace_back(state.begin(), state.end());
            }
        };
        give(0, kText, 7);
        give(1, kOther, 3);
        std::vector<BatchRow> rows;
        Slots::add(rows, 0, kText, 0, 7);
        Slots::add(rows, 1, kOther, 0, 3);
        auto inputs = inputs_for(rows);
        CHECK(together->decode(rows, inputs) == DecodeStatus::kOk);
        for (const auto& [slot, row] : {std::pair<SlotId, std::size_t>{0, 6}, {1, 9}}) {
            const auto state = together->state(row);
            const std::vector<float> actual(state.begin(), state.end());
            CHECK_EQ(actual.size(), width);
            const auto& expected = given[slot].back();
            CHECK(distance(actual, expected) * 20 < distance(given[slot].front(), expected));
        }
    });
}

namespace {

struct Run {
    std::map<SequenceId, std::vector<Token>> said;
    EngineStats stats;
    std::int64_t read = 0;  // rows of the layers
};

enum class Drafts : std::uint8_t { kNone, kOfText, kOfLayers };

// Eleven answers on three slots: prefixes are shared, and slots move to memory and back.
Run run(CacheLayout layout, float temperature, Drafts drafts) {
    const auto backend = make_backend(layout, false, 3);
    double now = 0.0;
    std::unique_ptr<DraftModel> head;
    if (drafts == Drafts::kOfLayers)
        head = std::make_unique<DraftModel>(
            std::make_unique<MtpHead>(make_backend(layout, true, 3), backend->hidden_states()),
            model->vocabulary().size(), [&now] { return now += 0.01; });
    Scheduler scheduler({.parallel = 2,
                         .step_token_budget = 128,
                         .ram_limit = std::int64_t{1} << 30,
                         .draft_limit = drafts == Drafts::kNone ? 0 : kUndo},
                        *backend, nullptr, nullptr, head.get());
    Run run;
    std::map<SequenceId, std::vector<Token>> texts;
    SequenceId last = 0;
    const auto answer = [&](std::vector<std::vector<Token>> prompts) {
        const SequenceId first = last + 1;
        for (auto& prompt : prompts) {
            texts[++last] = prompt;
            scheduler.submit({.id = last,
                              .prompt = std::move(prompt),
                              .sampling = {.temperature = temperature,
                                           .top_k = 4,
                                           .seed = static_cast<std::uint32_t>(last),
                                           .ignores_end = true},
                              .limits = {.max_tokens = 40},
                              .marks = {kPrompt}});
        }
        for (Milliseconds step = 0; scheduler.step(step); ++step) {
            scheduler.took(10.0);
            const std::string wrong = scheduler.check_integrity();
            if (!wrong.empty()) check::fail(__FILE__, __LINE__, wrong);
            for (const Event& event : scheduler.take_events().events) {
                CHECK(event.kind != EventKind::kFailed);
                auto& said = run.said[event.id];
                said.insert(said.end(), event.tokens.begin(), event.tokens.end());
            }
        }
        std::vector<std::vector<Token>> histories;
        for (SequenceId id = first; id <= last; ++id)
            histories.push_back(joined(texts[id], run.said[id]));
        return histories;
    };
    const auto shared = words(kText, kPrompt);
    std::vector<std::vector<Token>> prompts;
    for (std::int32_t seed = 3; seed < 8; ++seed)
        prompts.push_back(joined(shared, words(seed, 20)));
    auto next = answer(prompts);
    for (auto& history : next)
        history = joined(std::move(history), words(9, 10));
    answer(next);
    answer({joined(words(kOther, 30), shared)});
    run.stats = scheduler.stats();
    run.read = head == nullptr ? 0 : head->rows();
    return run;
}

}  // namespace

TEST(what_is_said_is_what_is_said_without_them) {
    for_each_layout([](CacheLayout layout) {
        for (const float temperature : {0.0f, 0.8f}) {
            const Run with = run(layout, temperature, Drafts::kOfLayers);
            const Run text = run(layout, temperature, Drafts::kOfText);
            const Run without = run(layout, temperature, Drafts::kNone);
            std::printf(
                "  %lld of %lld drafted rows accepted, %lld rows read, %lld steps for %lld\n",
                static_cast<long long>(with.stats.accepted_rows),
                static_cast<long long>(with.stats.drafted_rows), static_cast<long long>(with.read),
                static_cast<long long>(with.stats.steps),
                static_cast<long long>(without.stats.steps));
            CHECK(with.said == without.said);
            CHECK_EQ(with.said.size(), 11u);
            CHECK(with.stats.ram_restores > 0);
            CHECK(with.stats.accepted_rows > text.stats.accepted_rows + 100);
            CHECK(with.stats.steps < text.stats.steps);
        }
    });
}

int main() {
    return check::run();
}
