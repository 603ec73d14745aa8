// One sequence's way through its grammar: the matcher and the mask of its next token. Part of a
// hold.
#pragma once

#include <cstdint>
#include <memory>
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
    bool stopped();

    // Why the grammar cannot guide any longer; "" while it can.
    const std::string& error() const { return error_; }

   private:
    // Takes the matcher's error over if a call `succeeded` not.
    bool check(bool succeeded);

    std::shared_ptr<const Grammar> grammar_;
    std::unique_ptr<Matcher> matcher_;
    std::vector<std::uint32_t> mask_;
    bool has_mask_ = false;
    std::string error_;
};

}  // namespace fermata
