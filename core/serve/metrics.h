// Metrics in the text format of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// Threads: every function from any thread; counting takes no lock. A metric that Registry gives lives as long as the registry.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ltc::serve {

// Name and value of each label, in the order in which they are written.
using Labels = std::vector<std::pair<std::string, std::string>>;

// A number that only grows.
class Counter {
 public:
  void add(uint64_t count = 1) { value_.fetch_add(count, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// A number that goes up and down.
class Gauge {
 public:
  void add(int64_t count) { value_.fetch_add(count, std::memory_order_relaxed); }
  void set(int64_t value) { value_.store(value, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// How often a value was at most each of some bounds, which ascend.
class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}
  void observe(double value);
  void write(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  const std::span<const double> bounds_;
  std::deque<std::atomic<uint64_t>> counts_;  // by bound, and those above all
  std::atomic<double> sum_{0};
};

// From 100 us to 10 s.
inline constexpr double kSecondsBounds[] = {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                            0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
inline constexpr double kRowsBounds[] = {1, 2, 4, 8, 16, 32, 64, 128};

class Registry {
 public:
  // The metric of that name and labels; makes it at the first call. The help text of the first call of a name is kept.
  Counter& counter(const std::string& name, const char* help, const Labels& labels = {});
  Gauge& gauge(const std::string& name, const char* help, const Labels& labels = {});
  Histogram& histogram(const std::string& name, const char* help, std::span<const double> bounds, const Labels& labels = {});

  std::string text() const;

 private:
  template <typename Metric>
  struct Family {
    const char* help;
    std::map<std::string, Metric> metrics;  // by their labels as text
  };
  template <typename Metric>
  using Families = std::map<std::string, Family<Metric>>;

  mutable std::mutex mutex_;
  Families<Counter> counters_;
  Families<Gauge> gauges_;
  Families<Histogram> histograms_;
};

}  // namespace ltc::serve
