"""What the page says of memory, audit and cost."""

from __future__ import annotations

from artoo.web.words.said import Said, Spoken


class BookWords(Spoken):
    """Words of what was learnt, of what the Auditor saw, and of what it all took."""

    # memory
    pyramid = Said("Pyramid", "金字塔")
    thinking_level = Said("thinking: files that only you change", "思维：只有您能改的文件")
    rules_level = Said("common sense: rules", "常识：规则")
    knowledge_level = Said("knowledge", "知识")
    megram_level = Said("megrams: single experiences, which fade", "记忆元：会淡去的单次经验")
    pair = Said("a doing and a thing", "做法与对象")
    pairs = Said("{count} pairs of a doing and a thing", "{count} 个“做法与对象”的配对")
    prefer = Said("Prefer", "优先")
    avoid = Said("Avoid", "避免")
    caution = Said("Be careful", "小心")
    attention = Said("attention", "注意")
    decision = Said("decision", "决策")
    over_time = Said("Over time, as it fades", "随时间淡去")
    dreams = Said("What the Dreamer did", "做梦者做了什么")
    no_memory = Said("Memory cannot be read: {why}", "无法读取记忆：{why}")
    proposals = Said("Proposed for the thinking layer", "对思维层的提议")
    look_up = Said("A pair, a tool, or a request", "一个配对、一个工具，或一个请求")
    look = Said("Look", "查看")
    experience = Said("Experience", "经历")
    unknown_pair = Said("Memory knows nothing of it.", "记忆中没有它。")
    left_out = Said(
        "{count} older ones are in the sums, and not in this list.",
        "另有 {count} 条更早的计入总和，但未列出。",
    )
    take_up = Said("Accept", "采纳")
    turn_down = Said("Refuse", "拒绝")
    no_dreams = Said("It has not run yet: artoo memory dream", "还没有运行过：artoo memory dream")
    dreamt = Said("{examined} looked at, {forgotten} forgotten", "查看 {examined} 条，遗忘 {forgotten} 条")
    unfinished = Said("goes on next time", "下次接着做")
    promoted = Said("made a rule of", "归纳成规则")
    demoted = Said("doubts", "存疑")
    guessed = Said("guesses", "推测")
    forgot = Said("forgot", "遗忘")
    biased = Said("noticed a habit in", "发现习惯性偏差")
    # audit
    report = Said("Since the last report", "自上次报告以来")
    verify = Said("Check the logs for changes", "检查日志是否被改动")
    whole = Said(
        "Whole: nothing that was recorded here is missing or was changed.",
        "完整：此处记录的内容没有缺失，没有改动。",
    )
    unproved = Said(
        "Not proved: that this home is no older copy of itself. To prove that later, keep this elsewhere:",
        "未能证明：此目录不是它自己的旧副本。若要日后证明，请另行保存：",
    )
    unrecorded = Said(
        "Nothing that was recorded is missing or was changed; {count} were never recorded.",
        "记录下来的没有缺失，没有改动；有 {count} 条从未记录。",
    )
    not_whole = Said("NOT WHOLE", "不完整")
    nothing_audited = Said("Nothing has been audited yet.", "还没有任何审计记录。")
    findings = Said("Findings", "发现")
    none_found = Said("Nothing was found wrong.", "没有发现问题。")
    chains = Said(
        "{count} chains, {records} records, {files} log files",
        "{count} 条链，{records} 条记录，{files} 个日志文件",
    )
    tool_health = Said("Tool health", "工具状况")
    tool_calls = Said("{calls} calls, {failed} of them failed", "调用 {calls} 次，其中失败 {failed} 次")
    retries = Said(
        "corrections: {logical} for a wrong approach, {environmental} for what resisted",
        "纠正：因方法不对 {logical} 次，因环境受阻 {environmental} 次",
    )
    executions = Said("failed executions: {count}", "执行失败：{count}")
    corrected = Said("corrected subtasks by how their gap moved", "被纠正的子任务，按差距的走向")
    accountable = Said("who answers for what failed", "失败由谁负责")
    gaps = Said("How D moved in each task", "各任务 D 的走向")
    missed = Said(
        "messages missed by slow readers: {dropped}, by the Auditor: {lost}",
        "慢读者错过的消息：{dropped}，审计者错过的：{lost}",
    )
    chain = Said("Chain", "链")
    records = Said("Records", "记录")
    messages = Said("Messages", "消息")
    ending = Said("Ended", "结束")
    anchored = Said("Heads of chains that are anchored: {count}", "已锚定的链头：{count}")
    # cost
    calls = Said("Model calls", "模型调用")
    tokens = Said("Tokens", "Token")
    money = Said("Money", "金额")
    per_day = Said("By day", "按日")
    latest = Said("Of the latest {count} tasks", "最近 {count} 个任务")
    not_counted = Said(
        "Not in here: what agents ask as reviewers, what memory asks while it dreams, and tasks without a result.",
        "不含：代理审查时的调用、做梦者的调用，以及没有结果的任务。",
    )
    total = Said("Total", "合计")
    no_cost = Said("No task has ended yet.", "还没有结束的任务。")
