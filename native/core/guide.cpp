#include "core/guide.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

namespace fermata {

Guide::Guide(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {}

void Guide::prepare() {
    if (has_mask_ || !error_.empty()) return;
    try {
        if (!matcher_) matcher_ = grammar_->make_matcher();
        has_mask_ = check(matcher_ != nullptr && matcher_->compute_mask(mask_));
    } catch (const std::exception& failure) {
        error_ = failure.what();
    }
}

bool Guide::consume(Token token) {
    has_mask_ = false;
    if (!closing_.empty() && closing_.front() == token) {
        closing_.pop_front();
        closed_ = closing_.empty();
    }
    return check(matcher_ != nullptr && matcher_->consume(token));
}

bool Guide::rollback(std::size_t count) {
    has_mask_ = false;
    closed_ = false;
    return check(matcher_ != nullptr && matcher_->rollback(count));
}

std::vector<Token> Guide::forced() {
    if (!error_.empty()) return {};
    std::vector<Token> tokens = matcher_->forced();
    check(matcher_->error().empty());
    return tokens;
}

std::size_t Guide::accepted(std::span<const Token> tokens) {
    return error_.empty() && matcher_ != nullptr ? matcher_->accepted(tokens) : 0;
}

std::vector<Token> Guide::forced_after(std::span<const Token> tokens) {
    if (!error_.empty() || matcher_ == nullptr) return {};
    std::size_t consumed = 0;
    while (consumed < tokens.size() && consume(tokens[consumed]))
        ++consumed;
    std::vector<Token> after = forced();
    if (consumed > 0) rollback(consumed);
    return after;
}

bool Guide::stopped() {
    return error_.empty() && matcher_->stopped();
}

bool Guide::accepting() {
    return error_.empty() && matcher_->accepting();
}

// To look for an end takes some masks' time, so it is done the more seldom the more room there is.
bool Guide::ask(Token sampled, Token end, std::int32_t remaining) {
    if (!closing_.empty() || remaining > look_at_ || remaining < 1) return false;
    if (!error_.empty()) return false;
    question_ = {sampled, end, remaining, matcher_->consume(sampled), true};
    return true;
}

bool Guide::ask_to_close(Token sampled, Token end, std::int32_t remaining) {
    if (!repeats_closable_ || !closing_.empty() || remaining < 1 || accepting()) return false;
    if (!error_.empty()) return false;
    question_ = {sampled, end, remaining, false, false};
    return true;
}

// A token that opens an object with many required members may add as much as kMargin.
std::optional<Token> Guide::decide(std::size_t& work) {
    constexpr std::int32_t kMargin = 64;
    Question& asked = *question_;
    if (asked.consumed) {
        const std::int32_t left = asked.remaining - 1;
        const Closing after = matcher_->closing(static_cast<std::size_t>(left), work);
        if (!after.done) return std::nullopt;
        asked.consumed = false;
        const bool back = rollback(1);
        if (after.tokens) {
            const auto room = left - static_cast<std::int32_t>(after.tokens->size());
            look_at_ = left - std::max(0, (room - kMargin) / 2);
        }
        if (after.tokens || !back) return std::exchange(question_, {})->sampled;
    }
    const Closing before = matcher_->closing(static_cast<std::size_t>(asked.remaining), work);
    if (!before.done) return std::nullopt;
    const Question answered = *std::exchange(question_, {});
    if (!before.tokens) {
        // The text may come to where an end is in reach, but each search takes time.
        if (answered.at_limit)
            look_at_ = answered.remaining / 2;
        else
            repeats_closable_ = false;
        return answered.sampled;
    }
    if (before.tokens->empty()) return answered.end;
    closing_.assign(before.tokens->begin(), before.tokens->end());
    return closing_.front();
}

bool Guide::check(bool succeeded) {
    if (succeeded || !error_.empty()) return succeeded && error_.empty();
    error_ = matcher_ == nullptr ? "there is no memory for the grammar" : matcher_->error();
    if (error_.empty()) error_ = "the grammar cannot go on";
    mask_.clear();
    return false;
}

}  // namespace fermata
