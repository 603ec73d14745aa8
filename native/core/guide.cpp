#include "core/guide.h"

#include <utility>

namespace fermata {

Guide::Guide(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {}

void Guide::prepare() {
    if (has_mask_ || !error_.empty()) return;
    if (!matcher_) matcher_ = grammar_->make_matcher();
    has_mask_ = check(matcher_ != nullptr && matcher_->compute_mask(mask_));
}

bool Guide::consume(Token token) {
    has_mask_ = false;
    return check(matcher_ != nullptr && matcher_->consume(token));
}

bool Guide::rollback(std::size_t count) {
    has_mask_ = false;
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

bool Guide::check(bool succeeded) {
    if (succeeded || !error_.empty()) return succeeded && error_.empty();
    error_ = matcher_ == nullptr ? "there is no memory for the grammar" : matcher_->error();
    if (error_.empty()) error_ = "the grammar cannot go on";
    mask_.clear();
    return false;
}

}  // namespace fermata
