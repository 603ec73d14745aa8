#include "scheduler_world.h"

#include <utility>

namespace fermata::testing {

CacheShape streams(std::int32_t slots, std::int32_t cells, std::int32_t rows) {
    return {.layout = CacheLayout::kStreams,
            .slot_count = slots,
            .cells_per_sequence = cells,
            .cells_total = 0,
            .max_rows = rows,
            .micro_batch_rows = rows,
            .partial_truncate = true};
}

CacheShape unified(std::int32_t slots, std::int64_t total, std::int32_t cells, std::int32_t rows) {
    return {.layout = CacheLayout::kUnified,
            .slot_count = slots,
            .cells_per_sequence = cells,
            .cells_total = total,
            .max_rows = rows,
            .micro_batch_rows = rows,
            .partial_truncate = true};
}

std::vector<Token> words(std::uint32_t seed, std::size_t count) {
    std::vector<Token> tokens;
    for (std::uint32_t state = seed * 2654435761u + 1; tokens.size() < count;) {
        state = state * 1664525u + 1013904223u;
        tokens.push_back(static_cast<Token>('a' + (state >> 16) % 26));
    }
    return tokens;
}

std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

World::World(CacheShape shape, SchedulerConfig config, SequenceFiles* files,
             DraftModel* draft_model)
    : backend(shape), scheduler(config, backend, nullptr, files, draft_model) {}

World::~World() = default;

SequenceId World::submit(std::vector<Token> prompt, std::int32_t max_tokens) {
    return submit({.id = 0, .prompt = std::move(prompt), .limits = {.max_tokens = max_tokens}});
}

SequenceId World::submit(SubmitRequest request) {
    request.id = ++last_id;
    prompts[request.id] = request.prompt;
    scheduler.submit(std::move(request));
    take();
    return last_id;
}

bool World::step() {
    const bool worked = scheduler.step(now);
    take();
    const std::string wrong = scheduler.check_integrity();
    if (!wrong.empty()) check::fail(__FILE__, __LINE__, wrong);
    return worked;
}

void World::run(int limit) {
    for (int i = 0; step(); ++i) {
        if (i == limit) check::fail(__FILE__, __LINE__, "the scheduler never comes to rest");
    }
}

std::vector<Token> World::reference(std::vector<Token> history, std::size_t count) const {
    std::vector<Token> sampled;
    while (sampled.size() < count) {
        sampled.push_back(backend.next_token(history));
        history.push_back(sampled.back());
    }
    return sampled;
}

void World::take() {
    EventBatch batch = scheduler.take_events();
    steps.insert(steps.end(), batch.steps.begin(), batch.steps.end());
    for (const Event& event : batch.events) {
        Outcome& outcome = outcomes[event.id];
        outcome.text += event.text;
        if (event.kind == EventKind::kProgress) continue;
        if (event.kind == EventKind::kPromptLogprobs) {
            CHECK_EQ(event.prompt_from, static_cast<std::int32_t>(outcome.prompt.size()) + 1);
            outcome.prompt.insert(outcome.prompt.end(), event.logprobs.begin(),
                                  event.logprobs.end());
            continue;
        }
        if (event.kind == EventKind::kWaiting || event.kind == EventKind::kAdmitted) {
            outcome.places.push_back(event);
            continue;
        }
        if (event.kind == EventKind::kExtended) {
            outcome.extended = event.prefill_done;
            continue;
        }
        outcome.kinds.push_back(event.kind);
        outcome.sampled.insert(outcome.sampled.end(), event.tokens.begin(), event.tokens.end());
        outcome.logprobs.insert(outcome.logprobs.end(), event.logprobs.begin(),
                                event.logprobs.end());
        outcome.ready += event.kind == EventKind::kToolCallReady;
        if (event.kind == EventKind::kTokens || event.kind == EventKind::kToolCallReady) continue;
        outcome.held = event.kind == EventKind::kToolCallPause;
        outcome.finished = event.kind == EventKind::kFinished;
        outcome.failed = event.kind == EventKind::kFailed;
        outcome.pause = event.pause;
        outcome.pending_token = event.pending_token;
        outcome.finish = event.finish;
        outcome.fail = event.fail;
        outcome.stop_string = event.stop_string;
        outcome.stop_token = event.stop_token;
        outcome.usage = event.usage;
    }
}

}  // namespace fermata::testing
