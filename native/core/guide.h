// One sequence's way through its grammar: the matcher and the mask of its next token. Part of a
// hold.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/matcher.h"
#include "core/token_mask.h"
#include "core/types.h"

namespace fermata {

class Guide {
   public:
    explicit Guide(std::shared_ptr<const Grammar> grammar);

    // Makes the mask of the next token, and the matcher before the first one. Any thread may call
    // it, while no other uses this object. Does nothing when the mask is there.
    void prepare();
    // Valid after prepare(), until the next consume or rollback; empty if error() is not.
    TokenMask mask() const { return mask_; }

    // Only after a prepare() of whatever time. Each answers false, or nothing, after an error.
    bool consume(Token token);
    bool rollback(std::size_t count);
    std::vector<Token> forced();
    // See Matcher::accepted.
    std::size_t accepted(std::span<const Token> tokens);
    // What would be forced after these, which are accepted.
    std::vector<Token> forced_after(std::span<const Token> tokens);
    bool stopped();
    bool accepting();

    // Asks whether the text can still be ended after `sampled` when at most `remaining` tokens may
    // follow in all, this one included. true: decide() has the answer, and until it gives that no
    // other call may be made. false: `sampled` may come next.
    bool ask(Token sampled, Token end, std::int32_t remaining);
    // The same of a text that has come to repeat itself inside of what it must close: it is closed
    // now, if at most `remaining` tokens do. false: it may be left as it is, or no end was found.
    bool ask_to_close(Token sampled, Token end, std::int32_t remaining);
    bool deciding() const { return question_.has_value(); }
    // The token that comes next: another one than was sampled, or `end`, if the text could not be
    // ended in time after it; closing() then begins with it. nullopt: `work` was used up before;
    // see Matcher::closing.
    std::optional<Token> decide(std::size_t& work);
    // What brings the text to its end and is not consumed yet.
    const std::deque<Token>& closing() const { return closing_; }
    // All of that was consumed: the text is to end here.
    bool closed() const { return closed_; }

    // Why the grammar cannot guide any longer; "" while it can.
    const std::string& error() const { return error_; }

   private:
    struct Question {
        Token sampled;
        Token end;
        std::int32_t remaining;
        bool consumed;  // what closes the text after `sampled` is looked for, else before it
        bool at_limit;  // else the text repeats itself
    };

    // Takes the matcher's error over if a call `succeeded` not.
    bool check(bool succeeded);

    std::shared_ptr<const Grammar> grammar_;
    std::unique_ptr<Matcher> matcher_;
    std::vector<std::uint32_t> mask_;
    bool has_mask_ = false;
    std::string error_;

    std::optional<Question> question_;
    std::deque<Token> closing_;
    bool closed_ = false;
    bool repeats_closable_ = true;  // false: no end was found, and it is no longer looked for
    std::int32_t look_at_ = std::numeric_limits<std::int32_t>::max();  // tokens remaining
};

}  // namespace fermata
