// The suite tested: it passes the good test plugins and catches each bad one, by the check that the table names; lists, reports
// and exit codes are right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/expected.h"
#include "conformance/must_pass.h"
#include "conformance/result.h"
#include "conformance/waivers.h"
#include "core/base/error.h"
#include "core/testing/test_plugins.h"

namespace ltc::conformance {
namespace {

using ::ltc::testing::plugin_path;
using ::testing::HasSubstr;
using ::testing::Not;

struct Ran {
  int code = -1;
  std::string text;
};

// Until nobody holds its output any more.
Ran run_command(const std::string& command) {
  std::FILE* pipe = ::popen(cat(command, " 2>&1").c_str(), "r");
  Ran ran;
  char chunk[4096];
  for (size_t size; (size = std::fread(chunk, 1, sizeof chunk, pipe)) > 0;) ran.text.append(chunk, size);
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

Ran run_suite(const std::string& args) { return run_command(cat(LTC_CONFORMANCE, " ", args)); }

Ran run_on(const std::string& plugin, const std::string& args) {
  const bool fault = plugin.starts_with("fault_");
  const std::string path = fault ? cat(ltc::testing::kPluginFolder, "/../faults/libltc_", plugin, ".so") : plugin_path(plugin);
  return run_suite(cat("--backend ", path, " ", args));
}

std::string in_temporary_folder(const std::string& name) { return (std::filesystem::path(::testing::TempDir()) / name).string(); }

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

std::string written(const std::string& name, const std::string& text) {
  const std::string path = in_temporary_folder(name);
  std::ofstream(path) << text;
  return path;
}

constexpr const char* kCoreTiers = "--tier loader,abi,memory,execute,cache,async,errors,threads";

class GoodPlugin : public ::testing::TestWithParam<const char*> {};

TEST_P(GoodPlugin, passes_the_core_tiers) {
  const Ran ran = run_on(GetParam(), kCoreTiers);
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, Not(HasSubstr("FAILED")));
}
INSTANTIATE_TEST_SUITE_P(, GoodPlugin,
                         ::testing::Values("test", "test_two", "test_async", "test_memory", "test_open_once_async",
                                           "fault_none_whole_copies", "fault_none_half_bytes", "fault_none_half_products"),
                         [](const auto& info) { return std::string(info.param); });

// Which check catches which bad plugin. Others may fail with it; without this one the fault would have to be found by luck.
struct Fault {
  const char *plugin, *check;
};
constexpr Fault kFaults[] = {
    {"test_corrupt", "Loader.the_library_loads_with_all_its_symbols"},
    {"test_not_a_plugin", "Loader.the_library_exports_only_the_entry"},
    {"test_old_abi", "Loader.entry_agrees_on_the_newest_common_version"},
    {"test_wrong_abi", "Loader.entry_agrees_on_the_newest_common_version"},
    {"test_no_table", "Loader.entry_gives_a_table"},
    {"test_short_table", "Loader.table_has_buffer_destroy"},
    {"test_missing_slot", "Loader.table_has_transfer"},
    {"test_half_group", "Loader.computing_slots_are_all_there_or_none"},
    {"test_requires_extension", "Loader.its_list_of_extensions_ends_and_requires_what_hosts_have"},
    {"test_no_device", "Loader.there_is_a_device_to_test"},
    {"test_fast_math", "Loader.loading_leaves_floating_point_numbers_alone"},
    {"test_bad_bytes", "Loader.describe_gives_strings_in_utf8"},
    {"test_too_many", "Loader.describe_counts_devices_that_can_be_numbered"},
    {"test_no_dtypes", "MemoryDevice.device_open_lists_a_dtype"},
    {"test_changes_floats", "Execute.a_run_computes"},
    {"test_same_output", "Execute.outputs_follow_the_order_of_the_graph"},
    {"test_input_as_output", "Execute.a_run_computes"},
    {"test_same_event", "Async.each_event_is_handed_out_once"},
    {"test_writes_beyond", "Loader.describe_writes_nothing_beyond_struct_size"},
    {"test_refuses_extensions", "AbiCompute.lower_skips_an_unknown_extension_with_bit_31"},
    {"test_ignores_flags", "Abi.transfer_refuses_an_unknown_flag"},
    {"test_any_operands", "AbiCompute.one_more_absent_input_is_not_claimed"},
    {"test_takes_options", "Loader.entry_refuses_an_unknown_option"},
    {"test_writes_on_error", "Abi.buffer_create_refuses_a_dtype_that_does_not_exist"},
    {"test_null_buffer", "MemorySizes.a_buffer_keeps_its_bytes/rank1_1"},
    {"test_stray_event", "Memory.a_part_at_the_end_is_written"},
    {"test_loses_errors", "MemoryOutside.is_refused_for_writing/one_byte_too_many"},
    {"test_reads_late", "Async.a_copy_without_an_event_has_read_its_memory"},
    {"test_throws", "Execute.a_run_computes"},
    {"test_bad_outputs", "Execute.a_run_computes"},
    {"test_crashes", "Execute.a_run_computes"},
    {"test_exits", "Execute.a_run_computes"},
    {"test_hangs", "Execute.a_run_computes"},
    {"test_overclaims", "Execute.claims_judges_each_node"},
    {"test_nameless_node", "Execute.lower_refuses_an_op_by_the_index_of_its_node"},
    {"test_counts_wrong", "ExecuteWrong.too_many_inputs_are_refused"},
    {"test_keeps_donation", "ExecuteDonation.donations_leave_nothing_behind"},
    {"test_keeps_events", "Async.events_leave_nothing_behind"},
    {"test_fails", "ErrorsCompute.a_run_that_works_reports_no_error"},
    // The minimal plugin with a line changed: faults/CMakeLists.txt.
    {"fault_wrong_rounding", "Ops.round_f32"},
    {"fault_wrong_cast", "OpsDerived.to_copy_f32_bf16"},
    {"fault_wrong_stride", "Ops.add_Tensor_f32"},
    {"fault_loses_nan", "Ops.maximum_f64"},
    {"fault_wrong_size", "Execute.a_million_elements_run"},
    {"fault_keeps_example_sizes", "ExecuteSymbolic.an_executable_for_many_sizes_is_right_for_each/linear"},
    {"fault_keeps_example_attributes", "ExecuteSymbolic.an_executable_for_many_sizes_is_right_for_each/numbers"},
    {"fault_no_bounds", "MemoryOutside.is_refused_for_reading/an_offset_too_large"},
    {"fault_donation_mix_up", "ExecuteDonation.a_donated_input_becomes_the_output"},
    {"fault_keeps_donation", "ExecuteDonation.donations_leave_nothing_behind"},
    {"fault_leaked_event", "Async.events_leave_nothing_behind"},
    {"fault_late_write", "Async.a_copy_without_an_event_has_written_its_memory"},
    {"fault_collectives_of_strangers", "ExecuteCollectives.of_groups_that_the_device_is_not_in_are_not_claimed"},
    {"fault_collectives_ignore_aborts", "ExecuteCollectives.a_group_that_is_aborted_fails_for_good"},
    {"fault_collectives_wait_for_ever", "ExecuteCollectives.a_rank_that_does_not_come_is_waited_for_no_longer_than_the_timeout"},
    {"fault_collectives_sum_in_any_order", "ExecuteCollectives.reductions_have_the_same_bits_at_all_ranks"},
    {"fault_collectives_fill_the_store", "ExecuteCollectives.leave_nothing_in_the_store_for_ever"},
    {"fault_profiles_stray_nodes", "ExecuteProfile.kernels_have_names_and_nodes_of_the_graph"},
    {"fault_profiles_another_clock", "ExecuteProfile.times_are_of_the_hosts_clock_and_in_order"},
    {"fault_profiles_the_first_extension", "ExecuteProfile.the_extension_is_found_behind_an_unknown_one"},
    {"fault_unknown_attribute", "AbiCompute.an_attribute_of_an_unknown_name_is_not_claimed"},
    {"fault_praises_bad_outputs", "ErrorsLate.outputs_that_are_good_all_the_same_hold_their_values"},
    {"fault_unfinished_error", "ErrorsLate.a_failed_run_is_over"},
    {"fault_waits_for_a_call", "Async.work_goes_on_without_further_calls"},
    {"fault_two_majors", "Loader.entry_refuses_a_range_of_two_majors"},
    {"fault_early_end", "Async.device_close_waits_for_the_queue"},
    {"fault_wants_a_context", "LoaderHost.a_hosts_context_may_be_null"},
    {"fault_reads_beyond", "MemoryHost.a_copy_to_the_device_reads_no_byte_beyond"},
    {"fault_one_device", "MemoryHost.each_device_is_handed_out_once"},
    {"fault_clears_on_error", "AbiOutCompute.lower_leaves_its_program_alone_on_error"},
    {"fault_resets_rounding", "AbiFloats.another_rounding_of_the_thread_stays"},
    {"fault_fewer_outputs", "ExecuteArguments.an_output_too_few_is_refused"},
    {"fault_stray_symbols", "ExecuteSymbols.values_for_a_graph_without_symbols_are_refused"},
    {"fault_wrong_code", "ErrorsLate.an_index_out_of_range_has_its_code"},
    {"fault_marks_beyond", "ErrorsLate.good_outputs_are_marked_with_0_or_1_and_no_more"},
    {"fault_short_centuries", "AsyncOrder.a_wait_of_centuries_is_no_wait_of_no_time"},
    {"fault_wrong_permissions", "ExecutePrecision.permissions_that_nobody_knows_are_left_alone"},
    {"fault_rounds_products", "ExecutePrecision.without_a_permission_products_keep_their_bits"},
    {"fault_rounds_convolutions", "ExecutePrecision.without_a_permission_convolutions_keep_their_bits"},
    {"fault_rounds_sums", "ExecutePrecision.without_a_permission_sums_of_f16_are_rounded_at_their_end"},
    {"fault_half_bytes", "MemoryPacked.a_listed_dtype_keeps_its_bits_and_others_are_refused/dtype_23"},
    {"fault_leaks_runs", "Stress.ten_thousand_queued_runs_are_right_and_keep_no_memory"},
    {"fault_leaks_devices", "StressEntry.a_device_opens_and_closes_a_thousand_times"},
    {"fault_leaves_threads", "StressEntry.a_closed_device_leaves_no_thread"},
    {"fault_leaks_instances", "StressEntry.instances_come_and_go_a_thousand_times"},
    {"fault_one_thread", "Stress.sixteen_threads_call_at_random"},
    {"fault_aborts_at_exit", "StressEnd.a_process_ends_with_everything_open"},
    {"fault_saving_in_process", "Cache.another_process_loads_what_was_saved"},
    {"fault_saving_any_length", "CacheDamage.bytes_truncated_anywhere_are_refused"},
    {"fault_saving_no_checksum", "CacheDamage.each_byte_of_the_head_counts_or_is_harmless"},
    {"fault_saving_own_code", "CacheDamage.bytes_damaged_anywhere_are_refused_or_harmless"},
    {"fault_saving_trusts_lengths", "CacheDamage.huge_lengths_are_refused_or_harmless"},
    {"fault_saving_same_executable", "Cache.each_load_makes_an_executable_of_its_own"},
    {"fault_saving_clears_on_error", "CacheDamage.a_refusal_leaves_its_out_parameter_alone"},
    {"fault_saving_leaks_loaded", "Cache.loading_leaves_nothing_behind"},
    {"fault_saving_forgets_when_off", "Cache.a_loaded_executable_is_saved_again"},
    {"fault_saving_new_fingerprint", "Cache.the_fingerprint_is_the_same_for_each_open"},
    {"fault_saving_deaf_to_sinks", "Cache.saving_ends_when_the_sink_takes_no_more"},
    {"fault_saving_late_sink", "Cache.the_sink_is_left_alone_when_saving_has_returned"},
    {"fault_saving_bad_keys", "CacheHost.a_cache_that_keeps_nothing_is_no_error"},
    {"fault_saving_new_keys", "CacheHost.what_is_kept_is_found_under_its_key"},
};

class BadPlugin : public ::testing::TestWithParam<Fault> {};

TEST_P(BadPlugin, is_caught) {
  const Ran ran = run_on(GetParam().plugin, cat("--timeout 2 --filter '", GetParam().check, "'"));
  EXPECT_EQ(ran.code, 1) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr(cat("FAILED  ", GetParam().check)));
}
INSTANTIATE_TEST_SUITE_P(, BadPlugin, ::testing::ValuesIn(kFaults),
                         [](const auto& info) { return std::string(info.param.plugin); });

TEST(Suite, what_another_process_cannot_load_is_all_that_is_wrong_with_it) {
  const std::string waivers = written("waivers.txt", "Cache.another_process_loads_what_was_saved 9999-12-31 a list in memory\n");
  const Ran ran = run_on("fault_saving_in_process", cat(kCoreTiers, " --waivers ", waivers));
  EXPECT_EQ(ran.code, 0) << ran.text;
}

TEST(Suite, a_device_that_opens_once_at_a_time_conforms) {
  const Ran ran = run_on("test_open_once", cat(kCoreTiers, " --verbose"));
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("unsupported: the device is one's alone: it is open once at a time"));
}

TEST(Suite, the_report_comes_whatever_the_plugin_does) {
  const Ran ran = run_on("test_crashes", kCoreTiers);
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("the plugin crashed the process: signal 6"));
  EXPECT_THAT(ran.text, HasSubstr("DOES NOT CONFORM"));
  EXPECT_THAT(ran.text, Not(HasSubstr("FAILED  Memory."))) << "a crash in execute is no failure of memory";
}

size_t count(const std::string& text, const std::string& part) {
  size_t times = 0;
  for (size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++times;
  return times;
}

TEST(Suite, ends_where_the_plugin_hangs_while_it_loads) {
  const Ran ran = run_on("test_hangs_loading", cat(kCoreTiers, " --timeout 1 --verbose"));
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(count(ran.text, "hangs: no end within 1 s"), 1u) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("not run  Execute.a_run_computes"));
  EXPECT_THAT(ran.text, HasSubstr("STOPPED: the plugin hangs while it loads"));
}

TEST(Suite, leaves_no_process_behind) {
  const Ran ran = run_command(cat("timeout --signal KILL 2 ", LTC_CONFORMANCE, " --backend ", plugin_path("test_hangs"),
                                  " --timeout 600 --filter Execute.a_run_computes"));
  EXPECT_NE(ran.code, 0);
}

std::vector<std::string> sorted_lines(const Ran& ran) {
  std::istringstream text(std::regex_replace(ran.text, std::regex("[0-9]+ ms"), ""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  std::ranges::sort(lines);
  return lines;
}

TEST(Suite, jobs_share_the_checks) {
  const std::string args = cat(kCoreTiers, " --verbose");
  const Ran alone = run_on("test_overclaims", args), shared = run_on("test_overclaims", cat(args, " --jobs 3"));
  EXPECT_EQ(shared.code, 1);
  EXPECT_EQ(sorted_lines(shared), sorted_lines(alone));
}

TEST(Suite, has_at_least_400_checks_below_the_ops) {
  const Ran ran = run_suite(cat("--list ", kCoreTiers));
  EXPECT_GE(std::count(ran.text.begin(), ran.text.end(), '\n'), 400);
}

TEST(Suite, writes_json_and_junit) {
  const std::string json = in_temporary_folder("conformance.json"), junit = in_temporary_folder("conformance.xml");
  const Ran ran = run_on("test_memory", cat("--tier memory --filter 'Memory.*' --json ", json, " --junit ", junit));
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(contents(json), HasSubstr("\"conforms\": null"));
  EXPECT_THAT(contents(json), HasSubstr("\"complete\": false"));
  EXPECT_THAT(contents(json), HasSubstr("\"selection\": {\"tiers\": [\"memory\"], \"filters\": [\"Memory.*\"]}"));
  EXPECT_THAT(contents(json),
              HasSubstr("{\"name\": \"Memory.a_part_at_the_end_is_written\", \"tier\": \"memory\", \"outcome\": \"passed\""));
  EXPECT_THAT(contents(junit), HasSubstr("<testsuite name=\"memory\""));
}

TEST(Suite, a_filtered_run_is_no_statement_of_conformance) {
  const std::string json = in_temporary_folder("filtered.json");
  const Ran ran = run_on("test_memory", cat("--tier memory --json ", json));
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, ::testing::ContainsRegex("RAN [0-9]+ of the suite's [0-9]+ checks; tiers memory\n"));
  EXPECT_THAT(ran.text, HasSubstr("No failure in these. This is no statement of conformance."));
  EXPECT_THAT(ran.text, Not(HasSubstr("CONFORMS")));
  EXPECT_THAT(contents(json), HasSubstr("\"conformance_version\": \"0.0.0\""));
}

// Memory alone makes a complete run short.
TEST(Suite, a_complete_run_without_failures_conforms) {
  const std::string json = in_temporary_folder("complete.json");
  const Ran ran = run_on("test_memory", cat("--json ", json));
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("CONFORMS, conformance version "));
  const std::string text = contents(json);
  EXPECT_THAT(text, HasSubstr("\"conforms\": true"));
  EXPECT_THAT(text, HasSubstr("\"complete\": true"));
  const bool clean = text.find("\"clean\": true") != std::string::npos;
  EXPECT_THAT(text, HasSubstr(cat("\"conformance_version\": \"", clean ? "1.0" : "0.0.0", "\"")));
  for (const char* fact : {"\"commit\": \"", "\"processor\": \"", "\"os\": \"", "\"kernel\": \""})
    EXPECT_THAT(text, HasSubstr(fact));
}

TEST(Suite, an_expected_failure_does_not_conform) {
  const std::string list = written("known.txt", "fails Ops.neg_f32: issue 12\n");
  const Ran ran = run_on("test_crashes", cat("--filter Ops.neg_f32 --expected ", list));
  EXPECT_EQ(ran.code, 0) << ran.text;
  EXPECT_THAT(ran.text, HasSubstr("DOES NOT CONFORM"));
}

TEST(Suite, reports_are_written_anew) {
  const std::string json = written("old.json", "of an older run");
  run_on("test_hangs_loading", cat("--timeout 1 --filter Loader.describe* --json ", json));
  EXPECT_THAT(contents(json), Not(HasSubstr("of an older run")));
  EXPECT_EQ(run_on("test", "--filter Loader.describe* --json /nowhere/report.json").code, 2);
}

TEST(Suite, reports_of_a_plugin_whose_names_are_no_text_are_text) {
  const std::string json = in_temporary_folder("bytes.json");
  run_on("test_bad_bytes", cat("--filter 'Loader.*' --json ", json));
  EXPECT_THAT(contents(json), HasSubstr("\"name\": \"caf\uFFFD\""));
}

TEST(Suite, wrong_use_is_exit_code_2) {
  EXPECT_EQ(run_suite("").code, 2);
  EXPECT_EQ(run_suite("--backend /nowhere/libltc_x.so").code, 2);
  EXPECT_EQ(run_suite("--backend /tmp/").code, 2);
  EXPECT_EQ(run_suite("--backend /dev/zero").code, 2);
  EXPECT_EQ(run_on("test", "--tier nothing").code, 2);
  EXPECT_EQ(run_on("test", "--filter 'Nothing.*'").code, 2);
  EXPECT_EQ(run_on("test", "--frobnicate").code, 2);
}

// ---- the vendor's list

TEST(Suite, an_expected_failure_is_none) {
  const std::string list = written("fails.txt", "# known\nfails Ops.neg_f32: issue 12\n");
  const Ran ran = run_on("test_crashes", cat("--filter Ops.neg_f32 --expected ", list));
  EXPECT_EQ(ran.code, 0) << ran.text;
}

TEST(Suite, an_expected_failure_that_passes_is_a_failure) {
  const std::string list = written("passes.txt", "fails Execute.a_run_computes: issue 12\n");
  const Ran ran = run_on("test", cat("--filter Execute.a_run_computes --expected ", list));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("passed, but line 1 of the expected list says that it fails (issue 12): take the line out"));
}

TEST(Suite, an_unclaimed_minimal_op_fails_unless_it_is_listed) {
  const Ran hidden = run_on("test", "--filter Ops.exp_f32");
  EXPECT_EQ(hidden.code, 1);
  EXPECT_THAT(hidden.text, HasSubstr("not claimed"));
  const std::string list = written("unsupported.txt", "unsupported Ops.*_f32: the device has five ops\n");
  EXPECT_THAT(run_on("test", cat("--verbose --filter Ops.exp_f32 --expected ", list)).text,
              HasSubstr("unsupported  Ops.exp_f32"));
}

TEST(Suite, a_list_with_an_unknown_name_is_refused) {
  const std::string list = written("unknown.txt", "fails Execute.no_such_check: issue 12\n");
  const Ran ran = run_on("test", cat("--expected ", list));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.text, HasSubstr("unknown.txt:1: no check is called 'Execute.no_such_check'"));
}

// ---- the must-pass list and waivers

TEST(MustPass, the_list_has_each_check_below_the_ops) {
  const std::string list = contents(LTC_MUST_PASS);
  std::string names, listed;
  std::istringstream all(run_suite("--list").text), lines(list);
  for (std::string name; std::getline(all, name);) names += MustPass::concerns(name) ? name + "\n" : "";
  for (std::string line; std::getline(lines, line);) listed += line.substr(0, line.find(' ')) + "\n";
  EXPECT_EQ(listed, names) << "write it anew: ltc-conformance --backend PLUGIN --must-pass FILE";
}

TEST(MustPass, no_expected_list_excuses_a_failure) {
  const std::string list = written("must.txt", "fails Execute.a_run_computes: issue 12\n");
  const Ran ran = run_on("test_crashes", cat("--filter Execute.a_run_computes --expected ", list));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("must pass by ABI 1.0, and only a waiver excuses it"));
}

TEST(MustPass, a_check_may_be_skipped_for_what_it_needs_only) {
  const MustPass list = MustPass::parse("A.a needs events, opens\nA.b\n");
  const auto judged = [&](const char* name, const char* message) {
    Result result{name, Outcome::kNotApplicable, 0, message, ""};
    list.judge(result);
    return result.outcome;
  };
  EXPECT_EQ(judged("A.a", "not applicable: the plugin is synchronous: it has no events"), Outcome::kNotApplicable);
  EXPECT_EQ(judged("A.a", "not applicable: the plugin has no memory_stats"), Outcome::kFailed);
  EXPECT_EQ(judged("A.b", "not applicable: the plugin is synchronous: it has no events"), Outcome::kFailed);
  EXPECT_EQ(judged("Ops.c", "not applicable: whatever"), Outcome::kNotApplicable);
  EXPECT_THROW(MustPass::parse("A.a needs luck\n"), Error);
}

TEST(Waived, a_failure_is_excused_until_its_day) {
  const std::string past = written("past.txt", "Execute.a_run_computes 2020-01-31 issue 12\n"),
                    future = written("future.txt", "Execute.a_run_computes 2999-01-31 issue 12\n");
  EXPECT_EQ(run_on("test_crashes", cat("--filter Execute.a_run_computes --waivers ", future)).code, 1) << "nothing passed";
  const Ran waived = run_on(
      "test_crashes", cat("--verbose --filter 'Execute.*a*comput*' --filter Loader.entry_gives_a_table --waivers ", future));
  EXPECT_THAT(waived.text, HasSubstr("waived  Execute.a_run_computes"));
  const Ran over = run_on("test_crashes", cat("--filter Execute.a_run_computes --waivers ", past));
  EXPECT_EQ(over.code, 1);
  EXPECT_THAT(over.text, HasSubstr("no longer waived since 2020-01-31 is over, by line 1 of the waivers (issue 12)"));
}

TEST(Waived, a_waived_check_that_passes_is_a_failure) {
  const std::string list = written("stale.txt", "Execute.a_run_computes 2999-01-31 issue 12\n");
  const Ran ran = run_on("test", cat("--filter Execute.a_run_computes --waivers ", list));
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.text, HasSubstr("passed, so take out line 1 of the waivers"));
}

TEST(Waived, lines_need_a_known_name_a_day_and_a_reason) {
  const std::vector<std::string> names{"A.b"};
  for (const char* line : {"A.b", "A.b 2026-02-30 x", "A.b 2026-1-1 x", "A.b soon x", "A.b 2026-01-01", "A.c 2026-01-01 x",
                           "A.b 2026-01-01 x\nA.b 2026-01-01 y"}) {
    EXPECT_THROW(Waivers::read(written("bad.txt", line), names), Error) << line;
  }
}

TEST(Expected, lines_need_a_kind_and_a_reason) {
  const std::vector<std::string> names{"A.b"};
  for (const char* line : {"A.b: reason", "fails A.b", "fails A.b:", "skips A.b: reason", "fails"}) {
    EXPECT_THROW(ExpectedList::read(written("bad.txt", line), names), Error) << line;
  }
  EXPECT_THROW(ExpectedList::read("/nowhere", names), Error);
}

TEST(Expected, stars_match_any_characters) {
  EXPECT_TRUE(matches("Ops.*_f64", "Ops.add_Tensor_f64"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("a*b*c", "a__b_b__c"));
  EXPECT_FALSE(matches("a*b*c", "a__b_b__"));
  EXPECT_FALSE(matches("Ops.add", "Ops.add_f64"));
}

}  // namespace
}  // namespace ltc::conformance
