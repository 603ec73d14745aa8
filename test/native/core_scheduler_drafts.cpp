// Drafts change the steps and nothing else: thousands of random requests with and without.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <random>
#include <utility>

#include "fake_matcher.h"
#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

class Dice {
   public:
    explicit Dice(std::uint32_t seed) : random_(seed) {}
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

   private:
    std::mt19937 random_;
};

// A phrase of few letters, several times: there is something to copy.
std::vector<Token> repeated(Dice& dice) {
    const auto phrase = words(dice.below(50), 4 + dice.below(12));
    std::vector<Token> tokens = words(dice.below(9), dice.below(6));
    for (std::uint32_t i = 0; i < 1 + dice.below(3); ++i)
        tokens = joined(joined(tokens, phrase), words(dice.below(9), 1 + dice.below(3)));
    return tokens;
}

std::string text_of(const std::vector<Token>& tokens) {
    return {tokens.begin(), tokens.end()};
}

std::shared_ptr<const Grammar> random_grammar(Dice& dice, const std::vector<Token>& prompt) {
    std::vector<std::string> texts;
    const std::string copied = text_of(prompt);
    for (std::uint32_t i = 0; i < 1 + dice.below(4); ++i) {
        std::string text = copied.substr(dice.below(static_cast<std::uint32_t>(copied.size())));
        texts.push_back(text + text_of(words(dice.below(99), 1 + dice.below(4))));
        if (dice.one_in(2)) texts.push_back(text + copied.substr(0, 3 + dice.below(9)));
    }
    return testing::texts(std::move(texts));
}

SubmitRequest random_request(Dice& dice) {
    SubmitRequest request{.prompt = repeated(dice)};
    request.limits.max_tokens = static_cast<std::int32_t>(1 + dice.below(60));
    if (dice.one_in(4)) request.limits.max_tokens = -1;
    if (dice.one_in(3)) request.limits.window = static_cast<std::int32_t>(1 + dice.below(12));
    if (dice.one_in(2)) request.sampling.temperature = 1.0f;
    request.sampling.seed = dice.below(1000);
    if (dice.one_in(3)) request.top_logprobs = static_cast<std::int32_t>(dice.below(3));
    for (std::uint32_t i = dice.below(3); i > 0; --i)
        request.stop.push_back(text_of(words(dice.below(999), 2 + dice.below(2))));
    if (dice.one_in(3)) request.grammar = random_grammar(dice, request.prompt);
    request.forced_tokens = !dice.one_in(3);
    request.close_at_limit = dice.one_in(2);
    if (dice.one_in(3)) {
        request.pause.call_open = text_of(words(dice.below(99), 1));
        request.pause.call_close = text_of(words(dice.below(99), 1));
        request.pause.hold_at_text_after_call = dice.one_in(2);
    }
    request.pause.hold_at_end = static_cast<PauseTriggers::HoldAtEnd>(dice.below(3));
    return request;
}

struct Case {
    CacheShape shape;
    std::uint64_t copies;
    std::uint64_t end_period;
    std::vector<SubmitRequest> requests;
    std::vector<Token> result;  // that holds are resumed with
    bool keeps_pending;
};

Case random_case(std::uint32_t seed) {
    Dice dice(seed);
    const std::uint32_t count = 1 + dice.below(3);
    Case made{.shape = dice.one_in(2) ? streams(6, 160, 40) : unified(6, 600, 160, 40),
              .copies = 60 + dice.below(41),
              .end_period = dice.one_in(3) ? 0 : 5 + dice.below(60),
              .requests = {},
              .result = repeated(dice),
              .keeps_pending = dice.one_in(2)};
    if (dice.one_in(3)) {
        made.shape.partial_truncate = false;
        made.shape.undo_rows = static_cast<std::int32_t>(1 + dice.below(16));
    }
    if (dice.one_in(2)) made.shape.max_logit_rows = static_cast<std::int32_t>(6 + dice.below(10));
    for (std::uint32_t i = 0; i < count; ++i)
        made.requests.push_back(random_request(dice));
    return made;
}

struct Run {
    std::map<SequenceId, Outcome> outcomes;
    EngineStats stats;
};

// It agrees with the model except where that copies, has less room and fails at times.
std::unique_ptr<DraftModel> draft_model_for(const Case& each, std::uint32_t seed) {
    CacheShape shape = each.shape;
    shape.max_rows = shape.micro_batch_rows = DraftModel::kMostRead;
    shape.max_logit_rows = 0;
    shape.partial_truncate = true;
    shape.cells_per_sequence -= static_cast<std::int32_t>(seed % 60);
    auto backend = std::make_unique<FakeBackend>(shape);
    backend->set_copies(each.copies - seed % 60);
    backend->set_end_period(each.end_period);
    for (std::int64_t call = 7; call < 200; call += 11)
        backend->set_status(call, call % 2 == 0 ? DecodeStatus::kNoCells : DecodeStatus::kFailed);
    double now = 0.0;
    return std::make_unique<DraftModel>(std::move(backend), kVocabulary,
                                        [now]() mutable { return now += 0.01; });
}

// Readers take what there is after each step, some of the time. Every other case has a draft model.
Run run(const Case& each, std::int32_t draft_limit, std::uint32_t seed) {
    Dice dice(seed);
    const auto draft_model = seed % 2 == 0 ? draft_model_for(each, seed) : nullptr;
    World world(each.shape,
                {.parallel = 4,
                 .step_token_budget = 40,
                 .ram_limit = each.shape.partial_truncate ? 0 : 1 << 20,
                 .left_limit = 8,
                 .draft_limit = draft_limit},
                nullptr, draft_model.get());
    world.backend.set_copies(each.copies);
    world.backend.set_end_period(each.end_period);
    std::map<SequenceId, std::size_t> read;
    std::map<SequenceId, int> rounds;
    for (const SubmitRequest& request : each.requests)
        world.submit(request);
    const auto over = [](const auto& entry) {
        return entry.second.finished || entry.second.failed;
    };
    for (int i = 0; i < 2'000; ++i) {
        world.step();
        if (draft_limit > 0) world.scheduler.took(0.1 + dice.below(50));
        for (auto& [id, outcome] : world.outcomes) {
            if (dice.one_in(2)) {
                const auto fresh = outcome.sampled.size() - read[id];
                world.scheduler.acknowledge(id, static_cast<std::int32_t>(fresh));
                read[id] += fresh;
            }
            if (!outcome.held) continue;
            outcome.held = false;
            if (++rounds[id] > 2) {
                world.scheduler.release(id, world.now);
            } else {
                world.scheduler.resume({.id = id,
                                        .tokens = each.result,
                                        .keep_pending = each.keeps_pending,
                                        .max_tokens = 20});
            }
        }
        if (world.outcomes.size() == each.requests.size() &&
            std::ranges::all_of(world.outcomes, over))
            break;
    }
    CHECK(std::ranges::all_of(world.outcomes, over));
    world.run();
    CHECK_EQ(world.scheduler.stats().cells_used, 0);
    CHECK_EQ(world.backend.cells_in_use(), world.scheduler.stats().cells_retained);
    return {world.outcomes, world.scheduler.stats()};
}

// `alone`: neither neighbours nor a reader that stops have a say in what is computed when.
void check_same(const Outcome& with, const Outcome& without, bool alone) {
    CHECK(with.sampled == without.sampled);
    CHECK_EQ(with.text, without.text);
    CHECK(with.kinds == without.kinds);
    CHECK_EQ(with.ready, without.ready);
    CHECK(with.finished == without.finished && with.fail == without.fail);
    CHECK(with.finish == without.finish && with.pause == without.pause);
    CHECK_EQ(with.stop_string, without.stop_string);
    CHECK_EQ(with.usage.generated_tokens, without.usage.generated_tokens);
    CHECK_EQ(with.logprobs.size(), without.logprobs.size());
    for (std::size_t i = 0; i < with.logprobs.size(); ++i) {
        CHECK_EQ(with.logprobs[i].logprob, without.logprobs[i].logprob);
        CHECK(with.logprobs[i].top == without.logprobs[i].top);
    }
    if (!alone) return;
    CHECK_EQ(with.usage.resumed_tokens, without.usage.resumed_tokens);
    CHECK_EQ(with.usage.cached_tokens, without.usage.cached_tokens);
    CHECK_EQ(with.usage.prefilled_tokens, without.usage.prefilled_tokens);
    CHECK_EQ(with.usage.recomputed_tokens, without.usage.recomputed_tokens);
}

bool is_alone(const Case& each) {
    return each.requests.size() == 1 && each.requests[0].limits.window == Limits().window;
}

}  // namespace

namespace {

// Steps of one guided generation whose tokens all have log-probabilities, so that each is sampled.
std::int64_t steps_of(const std::string& prompt, std::vector<std::string> allowed,
                      std::int32_t draft_limit) {
    World world(streams(4, 200, 100), {.step_token_budget = 100, .draft_limit = draft_limit});
    SubmitRequest request{.prompt = tokens_of(prompt), .top_logprobs = 0};
    request.grammar = texts(std::move(allowed));
    const SequenceId id = world.submit(std::move(request));
    world.run();
    CHECK(world.outcomes.at(id).finish == FinishReason::kEnd);
    // But for the end.
    CHECK_EQ(world.outcomes.at(id).logprobs.size() + 1, world.outcomes.at(id).sampled.size());
    return world.scheduler.stats().steps;
}

// What a decode call takes, in milliseconds.
struct Cost {
    double call, row;
    double of(const FakeBackend& backend) const {
        return call * static_cast<double>(backend.decode_calls()) +
               row * static_cast<double>(backend.rows());
    }
};

// A model and, beside it, one that always says the same, which both take their time.
class Timed {
   public:
    Timed(Cost cost, std::optional<Cost> cost_of_draft_model, std::int32_t draft_limit = 15)
        : cost_(cost) {
        const CacheShape shape = streams(8, 4'000, DraftModel::kMostRead);
        if (cost_of_draft_model) {
            auto owned = std::make_unique<FakeBackend>(shape);
            draft_ms_ = [backend = owned.get(), its = *cost_of_draft_model] {
                return its.of(*backend);
            };
            draft_model_.emplace(std::move(owned), kVocabulary, draft_ms_);
        }
        world_.emplace(shape,
                       SchedulerConfig{.parallel = 8,
                                       .step_token_budget = DraftModel::kMostRead,
                                       .draft_limit = draft_limit},
                       nullptr, draft_model_ ? &*draft_model_ : nullptr);
    }

    // So many answers side by side, which might have been longer. Returns what all steps but those
    // of prompts took.
    double answer(std::uint32_t count, std::size_t prompt_size, std::size_t tokens) {
        std::map<SequenceId, std::vector<Token>> expected;
        for (std::uint32_t seed = 0; seed < count; ++seed) {
            const auto prompt = words(seeds_++, prompt_size);
            expected[world_->submit(prompt, 256)] = world_->reference(prompt, tokens);
        }
        return answer(expected, tokens);
    }

    // The same for one answer that says `said`.
    double say(const std::vector<Token>& prompt, const std::vector<Token>& said) {
        SubmitRequest request{.prompt = prompt};
        request.sampling.script = said;
        return answer({{world_->submit(std::move(request)), said}}, said.size());
    }
    EngineStats stats() const { return world_->scheduler.stats(); }

   private:
    double answer(const std::map<SequenceId, std::vector<Token>>& expected, std::size_t tokens) {
        double decoding = 0.0;
        for (double before = now(); world_->step(); before = now()) {
            const double took = now() - before;
            const auto prefilled = std::exchange(prefilled_, stats().prefilled_tokens);
            if (stats().prefilled_tokens == prefilled) decoding += took;
            world_->scheduler.took(took);
            for (const auto& [id, whole] : expected) {
                const auto& outcome = world_->outcomes[id];
                if (outcome.sampled.size() >= tokens && !outcome.failed)
                    world_->scheduler.cancel(id, world_->now);
            }
        }
        for (const auto& [id, whole] : expected) {
            const auto& sampled = world_->outcomes.at(id).sampled;
            CHECK(std::ranges::equal(std::span(sampled).first(tokens), whole));
        }
        return decoding;
    }
    double now() const { return cost_.of(world_->backend) + draft_ms_(); }

    Cost cost_;
    std::function<double()> draft_ms_ = [] { return 0.0; };
    std::optional<DraftModel> draft_model_;
    std::optional<World> world_;
    std::uint32_t seeds_ = 1;
    std::int64_t prefilled_ = 0;
};

// Pieces of `phrase`, with new tokens behind each.
std::vector<Token> pieces_of(const std::vector<Token>& phrase, std::ptrdiff_t size,
                             std::size_t new_tokens, std::uint32_t seed) {
    std::vector<Token> said;
    for (std::uint32_t i = 0; said.size() < 160; ++i) {
        const auto from = phrase.begin() + 20 * (i % 18);
        const std::vector piece(from, from + size);
        said = joined(joined(said, piece), words(1000 * seed + i, new_tokens));
    }
    return said;
}

}  // namespace

TEST(what_the_text_does_not_say_a_draft_model_may) {
    Timed with({20.0, 0.1}, Cost{1.0, 0.1}), without({20.0, 0.1}, std::nullopt);
    const double alone = without.answer(1, 40, 200);
    CHECK_EQ(without.stats().draft_model_rows, 0);
    CHECK(with.answer(1, 40, 200) < alone / 4);
    CHECK(with.stats().draft_model_rows > 0);
}

TEST(a_long_text_is_read_first_and_then_there_are_drafts_of_it) {
    Timed with({20.0, 0.1}, Cost{1.0, 0.1}), without({20.0, 0.1}, std::nullopt);
    const double alone = without.answer(1, 3'000, 200);
    CHECK(with.answer(1, 3'000, 200) < alone / 2);
}

// At first a draft model may cost half a second beyond what it saves. To measure it takes a
// quarter, and the last piece that it reads a tenth.
constexpr double kAtFirst = 850.0;

// Of 16 rows a step takes 60 milliseconds and of 8 rows 40, and a round of the draft model 19: even
// where it is always right that is less for the time.
TEST(a_draft_model_that_does_not_pay_costs_little) {
    constexpr Cost cost{20.0, 2.5}, its{3.0, 2.0};
    Timed with(cost, its), without(cost, std::nullopt);
    double ms_with = 0.0, ms_without = 0.0;
    for (int turn = 0; turn < 4; ++turn) {
        ms_with += with.answer(8, 300, 100);
        ms_without += without.answer(8, 300, 100);
    }
    CHECK(ms_with < 1.03 * ms_without + kAtFirst);
}

// Answers of a few tokens behind long texts: what reading takes is not won back.
TEST(reading_that_does_not_pay_is_given_up) {
    constexpr Cost cost{20.0, 0.1}, its{1.0, 0.5};
    Timed with(cost, its), without(cost, std::nullopt);
    double ms_with = 0.0, ms_without = 0.0;
    for (int turn = 0; turn < 40; ++turn) {
        ms_with += with.answer(1, 1'000, 12);
        ms_without += without.answer(1, 1'000, 12);
    }
    CHECK(with.stats().draft_model_rows > 500);
    CHECK(ms_with < 1.03 * ms_without + kAtFirst);
}

// Others have taught that short matches go on, and here none does.
TEST(a_text_that_drafts_find_nothing_for_takes_hardly_longer) {
    constexpr Cost cost{20.0, 5.0};
    Timed with(cost, std::nullopt), without(cost, std::nullopt, 0);
    const auto phrase = words(1, 400);
    for (std::uint32_t turn = 1; turn < 5; ++turn)
        with.say(phrase, pieces_of(phrase, 12, 1, turn));
    const auto said = pieces_of(phrase, 3, 5, 9);
    const auto drafted_before = with.stats().drafted_rows;
    const double alone = without.say(phrase, said), took = with.say(phrase, said);
    CHECK(with.stats().drafted_rows > drafted_before);
    // A token, and one and a half for each hundred, of 160.
    CHECK(took < (1.015 + 1.0 / 160) * alone);
}

// What rows take is not known before the first draft, which is wrong: they cost more than time
// gives back within the answer.
TEST(after_a_wrong_draft_a_text_that_repeats_another_has_drafts_again) {
    constexpr Cost cost{20.0, 20.0};
    Timed with(cost, std::nullopt), without(cost, std::nullopt, 0);
    const auto phrase = words(1, 400);
    const auto begun = joined(words(7'000, 8), {phrase.begin(), phrase.begin() + 3});
    const std::vector copied(phrase.begin() + 100, phrase.begin() + 160);
    const auto said = joined(joined(begun, words(8'000, 4)), copied);
    const double alone = without.say(phrase, said), took = with.say(phrase, said);
    CHECK(took < 0.85 * alone);
}

TEST(what_a_grammar_forces_is_drafted) {
    CHECK_EQ(steps_of("prompt", {"abcdefghijkl"}, 0), 12);
    CHECK_EQ(steps_of("prompt", {"abcdefghijkl"}, 15), 2);
    // Behind what was read before, of which it accepts a part.
    const std::string known = "the name of all these files is ";
    CHECK_EQ(steps_of(known + "abcdefghi; " + known, {"abcdefgh\", so"}, 15), 2);
}

// Six tokens that the grammar forces are decoded with the one before them, and a draft behind.
TEST(a_draft_has_as_many_rows_as_it_may_with_those_before_it) {
    std::string prompt;
    std::vector<std::string> allowed;
    for (const char first : {'a', 'b'}) {
        for (const char last : {'c', 'd'}) {
            allowed.push_back(first + std::string("123456") + last + "the rest of it is long");
            prompt += allowed.back() + "; ";
        }
    }
    World world(streams(2, 400, 200), {.step_token_budget = 200, .draft_limit = 15});
    SubmitRequest request{.prompt = tokens_of(prompt)};
    request.grammar = texts(std::move(allowed));
    world.submit(std::move(request));
    world.step();
    std::int64_t most = 0;
    for (std::int64_t before = world.backend.rows(); world.step(); before = world.backend.rows())
        most = std::max(most, world.backend.rows() - before);
    CHECK_EQ(most, 16);
}

TEST(without_being_asked_for_drafts_are_where_they_change_no_bit) {
    const auto drafted_with = [](bool may_change_bits, bool keeps_bits) {
        CacheShape shape = streams(2, 400);
        shape.keeps_bits = keeps_bits;
        World world(shape, {.draft_limit = 8, .drafts_may_change_bits = may_change_bits});
        SubmitRequest request{.prompt = words(1, 60)};
        request.sampling.script = request.prompt;
        world.submit(std::move(request));
        world.run();
        return world.scheduler.stats().drafted_rows;
    };
    CHECK(drafted_with(true, false) > 0);
    CHECK(drafted_with(false, true) > 0);
    CHECK_EQ(drafted_with(false, false), 0);
}

// Beside another's prompt there are no drafts, and nothing is learned of those before it.
TEST(a_proposal_is_judged_once) {
    const auto accepted_with = [](bool another_reads) {
        World world(streams(2, 400), {.parallel = 2, .step_token_budget = 9, .draft_limit = 8});
        const auto phrase = words(1, 60), begun = std::vector(phrase.begin(), phrase.begin() + 30);
        const auto new_to_it = tokens_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
        world.submit(words(2, 5), 1);
        SubmitRequest request{.prompt = joined(phrase, begun)};
        request.sampling.script = joined({phrase[30]}, joined(new_to_it, phrase));
        const SequenceId id = world.submit(std::move(request));
        while (world.outcomes[id].sampled.size() < 2)
            world.step();
        if (another_reads) world.submit(words(3, 200), 1);
        world.run();
        return world.scheduler.stats().accepted_rows;
    };
    CHECK(accepted_with(false) > 40);
    CHECK_EQ(accepted_with(true), accepted_with(false));
}

// FERMATA_DRAFT_CASES: how many; 2,000 take some seconds.
TEST(random_cases_are_the_same_without_drafts) {
    const char* const named = std::getenv("FERMATA_DRAFT_CASES");
    const auto cases = static_cast<std::uint32_t>(named == nullptr ? 2'000 : std::atoi(named));
    std::int64_t drafted = 0, accepted = 0, by_model = 0, steps_with = 0, steps_without = 0;
    for (std::uint32_t seed = 0; seed < cases; ++seed) {
        const Case each = random_case(seed);
        const Run with = run(each, static_cast<std::int32_t>(1 + seed % 16), seed);
        const Run without = run(each, 0, seed);
        CHECK_EQ(without.stats.drafted_rows, 0);
        try {
            for (const auto& [id, outcome] : with.outcomes)
                check_same(outcome, without.outcomes.at(id), is_alone(each));
        } catch (const check::Failure& failure) {
            check::fail(__FILE__, __LINE__,
                        "case " + std::to_string(seed) + ": " + failure.message);
        }
        drafted += with.stats.drafted_rows;
        accepted += with.stats.accepted_rows;
        by_model += with.stats.draft_model_rows;
        steps_with += with.stats.steps;
        steps_without += without.stats.steps;
    }
    CHECK(accepted > 2 * cases);
    CHECK(by_model > 5 * cases);
    CHECK(drafted > accepted + cases);
    CHECK(steps_with < steps_without);
}

TEST_MAIN()
