// Sampling: chooses each sequence's next token from its row of logits, and lets its guide search
// for the end of a text.
#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include "core/scheduler.h"

namespace fermata {

namespace {

// A text that repeats at most kLongestPattern tokens for kRepetitive tokens does not end by itself.
constexpr std::int32_t kRepetitive = 128;
constexpr std::int32_t kLongestPattern = 16;
// Nor does one that goes on being blank after so many. Vocabularies have tokens of eight blanks and
// more, so an indented text has few of them in a row.
constexpr std::int32_t kBlank = 48;

bool repeats_itself(const Sequence& sequence) {
    if (sequence.generated_in_round < kRepetitive) return false;
    const std::span last(sequence.tokens.end() - kRepetitive, sequence.tokens.end());
    for (std::int32_t length = 1; length <= kLongestPattern; ++length) {
        if (std::equal(last.begin() + length, last.end(), last.begin())) return true;
    }
    return false;
}

// Blanks, or what JSON writes for them.
bool is_blank(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\\' && i + 1 < text.size() &&
            std::string_view("nrt").find(text[i + 1]) != std::string_view::npos)
            ++i;
        else if (std::string_view(" \n\r\t").find(text[i]) == std::string_view::npos)
            return false;
    }
    return !text.empty();
}

// Checks of grammars per step, for all sequences together that search for their end. A check takes
// 20 to 300 us, and every sequence's next token waits for it.
constexpr std::size_t kClosingWork = 32;

}  // namespace

// The log-probabilities of the prompt behind the rows that were decoded.
void Scheduler::tell_prompt(const Share& share) {
    Sequence& sequence = *sequences_.at(share.id);
    if (!sequence.tells_prompt()) return;
    const std::int32_t begin = sequence.resident - share.count;
    const std::size_t first_row = share.last_row + 1 - static_cast<std::size_t>(share.count);
    std::vector<TokenLogprobs> told;
    for (std::int32_t i = 0; i < share.count; ++i) {
        if (!sequence.tells_row(begin + i)) continue;
        const auto logits = backend_.logits(first_row + static_cast<std::size_t>(i));
        const Token token = sequence.tokens[static_cast<std::size_t>(begin + i + 1)];
        told.push_back(logprobs_of(logits, token, sequence.prompt_logprobs));
    }
    if (told.empty()) return;
    Event& event = emit(EventKind::kPromptLogprobs, sequence);
    event.prompt_from = sequence.prompt_told;
    sequence.prompt_told += static_cast<std::int32_t>(told.size());
    event.logprobs = std::move(told);
}

bool Scheduler::goes_on_blank(const Sequence& sequence, Token sampled) const {
    if (sequence.generated_in_round < kBlank || !is_blank(text_of(sequence, sampled))) return false;
    const std::span last(sequence.tokens.end() - kBlank, sequence.tokens.end());
    return std::all_of(last.rbegin(), last.rend(),
                       [&](Token token) { return is_blank(text_of(sequence, token)); });
}

void Scheduler::sample(Milliseconds now) {
    for (const Share& share : shares_)
        tell_prompt(share);
    for (const Share& share : shares_) {
        if (!share.samples) continue;
        std::size_t row = share.last_row;
        for (std::int32_t next = 1; next > 0; row += static_cast<std::size_t>(next)) {
            sample(*sequences_.at(share.id), row, now);
            next = confirm_drafted(share.id);
        }
        judge_proposal(share.id);
    }
    decide(now);
}

// Chooses the token behind the row, and does what follows from it.
void Scheduler::sample(Sequence& sequence, std::size_t row, Milliseconds now) {
    // It was preempted while its guide decided, and its rows are there again.
    if (sequence.guide && sequence.guide->deciding()) return;
    if (sequence.guide) sequence.guide->prepare();
    const auto logits = backend_.logits(row);
    if (logits.empty()) {
        fail(sequence, FailCode::kDecodeFailed, "the backend gave no logits");
        return;
    }
    const Token token = choose(sequence, logits);
    // -1: nothing was left to choose, and the vocabulary has no end.
    if (token < 0 || std::isnan(logits[static_cast<std::size_t>(token)])) {
        fail(sequence, FailCode::kDecodeFailed,
             "the model gave values that are no numbers: its file is damaged, or was overwritten "
             "while it was in use");
        return;
    }
    const Token end = backend_.end_token();
    const bool asks =
        sequence.guide &&
        ((sequence.close_at_limit && sequence.guide->ask(token, end, remaining(sequence))) ||
         ((repeats_itself(sequence) || goes_on_blank(sequence, token)) &&
          sequence.guide->ask_to_close(token, end, remaining(sequence))));
    if (!asks) {
        settle(sequence, token, logits, now);
    } else if (sequence.top_logprobs >= 0) {
        sequence.logits.assign(logits.begin(), logits.end());
    }
}

Token Scheduler::choose(Sequence& sequence, std::span<const float> logits) {
    const auto filtered = [&](TokenMask grammar) {
        const auto round = static_cast<std::size_t>(sequence.generated_in_round);
        return sequence.filter.mask(grammar, std::span(sequence.tokens).last(round),
                                    sequence.usage.generated_tokens, backend_, logits.size());
    };
    if (!sequence.guide) return sequence.sampler->sample(logits, filtered({}));
    Guide& guide = *sequence.guide;
    if (guide.closing().empty()) return sequence.sampler->sample(logits, filtered(guide.mask()));
    sequence.sampler->skip(guide.closing().front());
    return guide.closing().front();
}

// All sequences that search for their end share kClosingWork. A longer search continues in the next
// step, while the others decode. false: no sequence searched.
bool Scheduler::decide(Milliseconds now) {
    std::vector<SequenceId> deciding;
    for (const SequenceId id : running_) {
        const Sequence& sequence = *sequences_.at(id);
        if (sequence.guide && sequence.guide->deciding() && sequence.rows_left() == 0)
            deciding.push_back(id);
    }
    std::size_t work = kClosingWork;
    for (std::size_t i = 0; i < deciding.size(); ++i) {
        Sequence& sequence = *sequences_.at(deciding[i]);
        const std::size_t most = (work + deciding.size() - i - 1) / (deciding.size() - i);
        std::size_t share = most;
        const auto token = sequence.guide->decide(share);
        work -= most - share;
        if (token) settle(sequence, *token, std::exchange(sequence.logits, {}), now);
    }
    return !deciding.empty();
}

// Takes the next token, with all its consequences.
void Scheduler::settle(Sequence& sequence, Token token, std::span<const float> logits,
                       Milliseconds now) {
    if (sequence.guide && !sequence.guide->error().empty()) {
        fail(sequence, FailCode::kGrammarFailed, sequence.guide->error());
        return;
    }
    if (sequence.top_logprobs >= 0)
        sequence.logprobs = sequence.post_sampling
                                ? sequence.sampler->draw(token, sequence.top_logprobs)
                                : logprobs_of(logits, token, sequence.top_logprobs);
    extend(sequence, token, now);
}

}  // namespace fermata
