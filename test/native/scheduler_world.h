// A scheduler over the fake backend, and what became of every sequence.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "check.h"
#include "core/scheduler.h"
#include "fake_backend.h"

namespace fermata::testing {

struct Outcome {
    std::vector<Token> sampled;
    std::vector<TokenLogprobs> logprobs;
    std::vector<TokenLogprobs> prompt;  // of the prompt, from its second token on
    std::string text;
    std::vector<EventKind> kinds;  // progress and places left out
    std::vector<Event> places;     // why it waited, and its admissions
    int ready = 0;
    bool held = false, finished = false, failed = false;
    bool pending_token = false;
    std::int32_t extended = 0;  // tokens of the extension that were prefilled
    PauseReason pause = PauseReason::kEndToken;
    FinishReason finish = FinishReason::kEnd;
    FailCode fail = FailCode::kInternal;
    Token stop_token = -1;
    std::string stop_string;
    Usage usage;
};

inline CacheShape streams(std::int32_t slots, std::int32_t cells = 512, std::int32_t rows = 64) {
    return {.layout = CacheLayout::kStreams,
            .slot_count = slots,
            .cells_per_sequence = cells,
            .cells_total = 0,
            .max_rows = rows,
            .micro_batch_rows = rows,
            .partial_truncate = true};
}

inline CacheShape unified(std::int32_t slots, std::int64_t total, std::int32_t cells = 512,
                          std::int32_t rows = 64) {
    return {.layout = CacheLayout::kUnified,
            .slot_count = slots,
            .cells_per_sequence = cells,
            .cells_total = total,
            .max_rows = rows,
            .micro_batch_rows = rows,
            .partial_truncate = true};
}

// Tokens that look like text, another sequence of them for each seed.
inline std::vector<Token> words(std::uint32_t seed, std::size_t count) {
    std::vector<Token> tokens;
    for (std::uint32_t state = seed * 2654435761u + 1; tokens.size() < count;) {
        state = state * 1664525u + 1013904223u;
        tokens.push_back(static_cast<Token>('a' + (state >> 16) % 26));
    }
    return tokens;
}

inline std::vector<Token> joined(std::vector<Token> first, const std::vector<Token>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

class World {
   public:
    explicit World(CacheShape shape,
                   SchedulerConfig config = {.parallel = 8, .step_token_budget = 64},
                   SequenceFiles* files = nullptr, DraftModel* draft_model = nullptr)
        : backend(shape), scheduler(config, backend, nullptr, files, draft_model) {}

    SequenceId submit(std::vector<Token> prompt, std::int32_t max_tokens = 16) {
        return submit({.id = 0, .prompt = std::move(prompt), .limits = {.max_tokens = max_tokens}});
    }
    SequenceId submit(SubmitRequest request) {
        request.id = ++last_id;
        prompts[request.id] = request.prompt;
        scheduler.submit(std::move(request));
        take();
        return last_id;
    }

    // false: nothing was decoded.
    bool step() {
        const bool worked = scheduler.step(now);
        take();
        const std::string wrong = scheduler.check_integrity();
        if (!wrong.empty()) check::fail(__FILE__, __LINE__, wrong);
        return worked;
    }
    void run(int limit = 10'000) {
        for (int i = 0; step(); ++i) {
            if (i == limit) check::fail(__FILE__, __LINE__, "the scheduler never comes to rest");
        }
    }

    // What a sequence alone on a fresh cache would have sampled.
    std::vector<Token> reference(std::vector<Token> history, std::size_t count) const {
        std::vector<Token> sampled;
        while (sampled.size() < count) {
            sampled.push_back(backend.next_token(history));
            history.push_back(sampled.back());
        }
        return sampled;
    }

    FakeBackend backend;
    Scheduler scheduler;
    Milliseconds now = 0;
    SequenceId last_id = 0;
    std::map<SequenceId, Outcome> outcomes;
    std::map<SequenceId, std::vector<Token>> prompts;
    std::vector<StepReport> steps;

   private:
    void take() {
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
            if (event.kind == EventKind::kTokens || event.kind == EventKind::kToolCallReady)
                continue;
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
};

}  // namespace fermata::testing
