#include "core/serve/metrics.h"

#include <algorithm>

#include "core/base/error.h"

namespace ltc::serve {
namespace {

std::string escaped(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n') {
      text += "\\n";
    } else {
      if (c == '"' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text;
}

std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += cat(text.empty() ? "" : ",", name, "=\"", escaped(value), "\"");
  return text;
}

std::string in_braces(const std::string& labels) { return labels.empty() ? "" : "{" + labels + "}"; }

void write_head(std::string& out, const std::string& name, const char* help, const char* kind) {
  out += cat("# HELP ", name, " ", help, "\n# TYPE ", name, " ", kind, "\n");
}

}  // namespace

void Histogram::observe(double value) {
  const auto place = static_cast<size_t>(std::ranges::lower_bound(bounds_, value) - bounds_.begin());
  counts_[place].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

void Histogram::write(std::string& out, const std::string& name, const std::string& labels) const {
  const std::string before = labels.empty() ? "" : labels + ",";
  uint64_t total = 0;
  for (size_t i = 0; i <= bounds_.size(); ++i) {
    total += counts_[i].load(std::memory_order_relaxed);
    const std::string bound = i == bounds_.size() ? "+Inf" : cat(bounds_[i]);
    out += cat(name, "_bucket{", before, "le=\"", bound, "\"} ", total, "\n");
  }
  out += cat(name, "_sum", in_braces(labels), " ", sum_.load(std::memory_order_relaxed), "\n");
  out += cat(name, "_count", in_braces(labels), " ", total, "\n");
}

Counter& Registry::counter(const std::string& name, const char* help, const Labels& labels) {
  std::lock_guard lock(mutex_);
  return counters_.try_emplace(name, help).first->second.metrics[text_of(labels)];
}

Gauge& Registry::gauge(const std::string& name, const char* help, const Labels& labels) {
  std::lock_guard lock(mutex_);
  return gauges_.try_emplace(name, help).first->second.metrics[text_of(labels)];
}

Histogram& Registry::histogram(const std::string& name, const char* help, std::span<const double> bounds, const Labels& labels) {
  std::lock_guard lock(mutex_);
  return histograms_.try_emplace(name, help).first->second.metrics.try_emplace(text_of(labels), bounds).first->second;
}

std::string Registry::text() const {
  std::lock_guard lock(mutex_);
  std::string out;
  const auto write_values = [&](const auto& families, const char* kind) {
    for (const auto& [name, family] : families) {
      write_head(out, name, family.help, kind);
      for (const auto& [labels, metric] : family.metrics) out += cat(name, in_braces(labels), " ", metric.value(), "\n");
    }
  };
  write_values(counters_, "counter");
  write_values(gauges_, "gauge");
  for (const auto& [name, family] : histograms_) {
    write_head(out, name, family.help, "histogram");
    for (const auto& [labels, metric] : family.metrics) metric.write(out, name, labels);
  }
  return out;
}

}  // namespace ltc::serve
