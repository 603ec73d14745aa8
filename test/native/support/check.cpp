#include "check.h"

#include <cstdio>
#include <exception>
#include <utility>
#include <vector>

namespace check {

namespace {

auto& tests() {
    static std::vector<std::pair<const char*, void (*)()>> all;
    return all;
}

}  // namespace

Registration::Registration(const char* name, void (*body)()) {
    tests().emplace_back(name, body);
}

void fail(const char* file, int line, std::string_view message) {
    throw Failure{std::string(file) + ":" + std::to_string(line) + ": " + std::string(message)};
}

void fail_unequal(const Place& place, const std::string& actual, const std::string& expected) {
    fail(place.file, place.line,
         std::string(place.subject) + " is " + actual + ", expected " + expected);
}

int run() {
    int failed = 0;
    for (const auto& [name, body] : tests()) {
        std::string problem;
        try {
            body();
        } catch (const Failure& failure) {
            problem = failure.message;
        } catch (const std::exception& error) {
            problem = std::string("threw ") + error.what();
        }
        if (problem.empty()) continue;
        failed++;
        std::printf("FAILED %s\n  %s\n", name, problem.c_str());
    }
    std::printf("%zu tests, %d failed\n", tests().size(), failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace check
