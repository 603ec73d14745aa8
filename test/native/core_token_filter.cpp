// Lists of allowed, banned and ending tokens, the least length of a text, and the log-probabilities
// of a prompt: their way through the scheduler.
#include <algorithm>

#include "scheduler_world.h"

using namespace fermata;
using namespace fermata::testing;

namespace {

const std::vector<CacheShape> kLayouts = {streams(4), unified(4, 4 * 512)};

SubmitRequest scripted(std::string_view text, TokenRules rules,
                       std::vector<std::string> stop = {}) {
    return {.prompt = words(1, 8),
            .sampling = {.rules = std::move(rules), .script = tokens_of(text)},
            .stop = std::move(stop)};
}

SubmitRequest greedy(std::vector<Token> prompt, TokenRules rules, std::int32_t max_tokens) {
    return {.prompt = std::move(prompt),
            .sampling = {.rules = std::move(rules)},
            .limits = {.max_tokens = max_tokens}};
}

bool has_end(std::span<const Token> tokens) {
    return std::ranges::any_of(tokens, [](Token token) { return token == kEnd || token == kTurn; });
}

}  // namespace

TEST(no_end_token_comes_before_the_least_length) {
    World world(streams(4));
    world.backend.set_end_period(3);
    const auto prompt = words(5, 40);
    const SequenceId plain = world.submit(greedy(prompt, {}, 60));
    const SequenceId longer = world.submit(greedy(prompt, {.min_tokens = 30}, 60));
    world.run();
    CHECK(world.outcomes.at(plain).sampled.size() < 30);
    const auto& sampled = world.outcomes.at(longer).sampled;
    CHECK(sampled.size() > 30);
    CHECK(!has_end(std::span(sampled).first(30)));
    CHECK(world.outcomes.at(longer).finish == FinishReason::kEnd);
}

TEST(a_stop_token_ends_the_text_and_is_no_part_of_it) {
    World world(streams(4));
    const SequenceId without = world.submit(scripted("abcd", {.stop_tokens = {'x', 'c'}}));
    const SequenceId with =
        world.submit(scripted("abcd", {.stop_tokens = {'c'}, .keeps_stop = true}));
    world.run();
    CHECK_EQ(world.outcomes.at(without).text, "ab");
    CHECK_EQ(world.outcomes.at(without).sampled, tokens_of("abc"));
    CHECK_EQ(world.outcomes.at(without).stop_token, 'c');
    CHECK(world.outcomes.at(without).finish == FinishReason::kStopString);
    CHECK_EQ(world.outcomes.at(with).text, "abc");
}

TEST(a_stop_string_may_stay_in_the_text) {
    World world(streams(4));
    const SequenceId kept = world.submit(scripted("abcdef", {.keeps_stop = true}, {"bcd"}));
    const SequenceId cut = world.submit(scripted("abcdef", {}, {"bcd"}));
    world.run();
    CHECK_EQ(world.outcomes.at(kept).text, "abcd");
    CHECK_EQ(world.outcomes.at(kept).stop_string, "bcd");
    CHECK_EQ(world.outcomes.at(kept).stop_token, -1);
    CHECK_EQ(world.outcomes.at(cut).text, "a");
}

TEST(what_is_held_back_for_a_stop_string_comes_before_a_stop_token) {
    World world(streams(4));
    const SequenceId id = world.submit(scripted("abcx", {.stop_tokens = {'x'}}, {"bcd"}));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, "abc");
}

TEST(no_stop_string_counts_before_the_least_length) {
    World world(streams(4));
    const SequenceId id = world.submit(scripted("abababab", {.min_tokens = 3}, {"ab"}));
    world.run();
    CHECK_EQ(world.outcomes.at(id).text, "abab");
    CHECK_EQ(world.outcomes.at(id).sampled.size(), 6u);
}

TEST(banned_tokens_are_not_sampled_behind_the_others) {
    World world(streams(4));
    const auto prompt = words(9, 30);
    const auto plain = world.reference(prompt, 3);
    const SequenceId one = world.submit(greedy(prompt, {.banned = {{plain[0]}}}, 3));
    const SequenceId two = world.submit(greedy(prompt, {.banned = {{plain[0], plain[1]}}}, 3));
    const SequenceId other = world.submit(greedy(prompt, {.banned = {{plain[1], plain[0]}}}, 3));
    world.run();
    CHECK(world.outcomes.at(one).sampled[0] != plain[0]);
    CHECK_EQ(world.outcomes.at(two).sampled[0], plain[0]);
    CHECK(world.outcomes.at(two).sampled[1] != plain[1]);
    CHECK_EQ(world.outcomes.at(other).sampled, plain);
}

TEST(only_allowed_tokens_are_sampled) {
    World world(streams(4));
    world.backend.set_end_period(3);
    const SequenceId id = world.submit(greedy(words(2, 30), {.allowed = {'x', 'y', 'z'}}, 20));
    world.run();
    const auto& sampled = world.outcomes.at(id).sampled;
    CHECK_EQ(sampled.size(), 20u);
    CHECK(std::ranges::all_of(sampled, [](Token token) { return token >= 'x' && token <= 'z'; }));
}

TEST(a_prompt_has_the_log_probabilities_of_each_of_its_tokens) {
    for (const CacheShape& layout : kLayouts) {
        for (const std::int32_t most : {0, 8}) {
            CacheShape shape = layout;
            shape.max_logit_rows = most;
            World world(shape, {.parallel = 4, .step_token_budget = 64});
            const auto prompt = words(4, 150);
            world.submit(prompt, 1);
            world.run();
            const auto rows = world.backend.rows();
            const SequenceId id =
                world.submit({.prompt = prompt, .limits = {.max_tokens = 1}, .prompt_logprobs = 2});
            // Another one decodes beside it.
            world.submit(words(8, 20), 30);
            world.run();
            const Outcome& outcome = world.outcomes.at(id);
            CHECK_EQ(outcome.usage.cached_tokens, 0);
            CHECK_EQ(outcome.usage.prefilled_tokens, 150);
            CHECK_EQ(world.backend.rows() - rows, 150 + 20 + 29);
            CHECK_EQ(outcome.prompt.size(), 149u);
            for (std::size_t i = 0; i < outcome.prompt.size(); ++i) {
                const Token likeliest = world.backend.next_token(std::span(prompt).first(i + 1));
                CHECK_EQ(outcome.prompt[i].top.size(), 2u);
                CHECK_EQ(outcome.prompt[i].top[0].first, likeliest);
                CHECK(outcome.prompt[i].logprob <= outcome.prompt[i].top[0].second);
            }
        }
    }
}

TEST(log_probabilities_of_a_prompt_leave_room_for_readers_that_come_back) {
    CacheShape shape = streams(8);
    shape.max_logit_rows = 16;
    World world(shape, {.parallel = 4, .step_token_budget = 64});
    // Two readers stop, and others take their places.
    std::vector<SequenceId> stopped;
    for (const std::uint32_t seed : {1u, 2u}) {
        stopped.push_back(
            world.submit({.prompt = words(seed, 20), .limits = {.max_tokens = 40, .window = 2}}));
    }
    world.run();
    std::vector<SequenceId> others;
    for (const std::uint32_t seed : {3u, 4u, 5u})
        others.push_back(world.submit(words(seed, 20), 60));
    const SequenceId told =
        world.submit({.prompt = words(6, 150), .limits = {.max_tokens = 1}, .prompt_logprobs = 0});
    world.step();
    for (const SequenceId id : stopped)
        world.scheduler.acknowledge(id, 2);
    world.run();
    CHECK_EQ(world.outcomes.at(told).prompt.size(), 149u);
    for (const SequenceId id : others)
        CHECK_EQ(world.outcomes.at(id).usage.recomputed_tokens, 0);
}

TEST_MAIN()
