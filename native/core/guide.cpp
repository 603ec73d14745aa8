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

bool Guide::stopped() {
    return error_.empty() && matcher_->stopped();
}

bool Guide::accepting() {
    return error_.empty() && matcher_->accepting();
}

// To look for an end takes some masks' time, so it is done the more seldom the more room there is.
// A token that opens an object with many required members may add as much as kMargin.
Token Guide::keep_closable(Token sampled, Token end, std::int32_t remaining) {
    constexpr std::int32_t kMargin = 64;
    if (!closable_ || remaining > look_at_ || remaining < 1 || !error_.empty()) return sampled;
    std::optional<std::vector<Token>> after;
    if (matcher_->consume(sampled)) {
        after = matcher_->closing(static_cast<std::size_t>(remaining - 1));
        if (!rollback(1)) return sampled;
    }
    if (after) {
        const std::int32_t room = remaining - 1 - static_cast<std::int32_t>(after->size());
        look_at_ = remaining - 1 - std::max(0, (room - kMargin) / 2);
        return sampled;
    }
    const auto before = matcher_->closing(static_cast<std::size_t>(remaining));
    closable_ = before.has_value();
    if (!before) return sampled;
    if (before->empty()) return end;
    closing_.assign(before->begin(), before->end());
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
