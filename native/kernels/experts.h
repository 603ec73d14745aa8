// Which rows go to which expert (GGML_OP_MUL_MAT_ID), in the order in which they are computed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ggml.h"

namespace fermata::products {

// The rows from `first` on go to matrix `matrix`.
struct Group {
    std::int64_t matrix;
    std::int64_t first;
    std::int64_t count;
};

// In an operator's work area.
struct Experts {
    std::int64_t* group_count;
    Group* groups;         // [expert]
    std::size_t* inputs;   // [row] bytes from x's first number
    std::size_t* outputs;  // [row] bytes from the result's first number

    static std::size_t bytes(const ggml_tensor* op) {
        const std::size_t rows = ggml_nelements(op->src[2]);
        return sizeof(std::int64_t) + op->src[0]->ne[2] * sizeof(Group) +
               2 * rows * sizeof(std::size_t);
    }
    Experts(void* memory, const ggml_tensor* op)
        : group_count(static_cast<std::int64_t*>(memory)),
          groups(reinterpret_cast<Group*>(group_count + 1)),
          inputs(reinterpret_cast<std::size_t*>(groups + op->src[0]->ne[2])),
          outputs(inputs + ggml_nelements(op->src[2])) {}

    /** Groups the rows by expert; experts without rows get no group. */
    void group(const ggml_tensor* op) const {
        const ggml_tensor* x = op->src[1];
        const ggml_tensor* ids = op->src[2];
        const auto each_row = [&](const auto& visit) {
            for (std::int64_t token = 0; token < ids->ne[1]; ++token) {
                for (std::int64_t i = 0; i < ids->ne[0]; ++i) {
                    const char* id =
                        static_cast<const char*>(ids->data) + token * ids->nb[1] + i * ids->nb[0];
                    visit(groups[*reinterpret_cast<const std::int32_t*>(id)], token, i);
                }
            }
        };
        const std::int64_t experts = op->src[0]->ne[2];
        for (std::int64_t e = 0; e < experts; ++e)
            groups[e] = {e, 0, 0};
        each_row([](Group& group, std::int64_t, std::int64_t) { ++group.count; });
        std::int64_t first = 0;
        for (std::int64_t e = 0; e < experts; ++e) {
            groups[e].first = first;
            first += groups[e].count;
            groups[e].count = 0;
        }
        each_row([&](Group& group, std::int64_t token, std::int64_t i) {
            const std::int64_t row = group.first + group.count++;
            inputs[row] = token * x->nb[2] + i % x->ne[1] * x->nb[1];
            outputs[row] = token * op->nb[2] + i * op->nb[1];
        });
        *group_count = 0;
        for (std::int64_t e = 0; e < experts; ++e)
            if (groups[e].count > 0) groups[(*group_count)++] = groups[e];
    }
};

}  // namespace fermata::products
