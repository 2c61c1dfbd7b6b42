"""What the page says of a task: how it thinks, what it asks, what it changed."""

from __future__ import annotations

from artoo.web.words.said import Said, Spoken


class TaskWords(Spoken):
    """Words of a task's pages."""

    # a task
    stop = Said("Stop", "停止")
    say = Said("Send", "发送")
    say_label = Said("Write to the task; it is read before the next turn", "给任务留言，下一步之前会读到")
    hold = Said("Interrupt the turn", "中断当前步骤")
    your_messages = Said("Your messages", "你的留言")
    checklist = Said("Checklist", "任务清单")
    checklist_done = Said("done", "已完成")
    checklist_in_progress = Said("in progress", "进行中")
    checklist_pending = Said("to do", "待办")
    samples = Said("Measured while it worked", "工作中的度量")
    sample_turn = Said("turn {number}", "第 {number} 步")
    words_label = Said("Your answer", "你的回答")
    plan_label = Said("What must be different (leave empty to run it as it is)", "要修改的地方（留空则按此执行）")
    run_plan = Said("Run it", "执行")
    stopping = Said("is asked to stop", "已请求停止")
    answer = Said("Answer", "回答")
    facts = Said("What code knows", "代码确知的事实")
    unmet = Said("Not met", "未满足")
    open_criteria = Said("Nothing decided", "尚无定论")
    next_moves = Said("What could come next", "下一步可以")
    how_it_thinks = Said("How it thinks", "它怎样思考")
    fast_loop = Said("fast loop: do, check, correct", "快环：执行、检查、纠正")
    medium_loop = Said("medium loop: plan, do, measure, decide", "中环：规划、执行、度量、决定")
    slow_loop = Said("slow loop: memory learns from how it ended", "慢环：记忆从结局中学习")
    no_directive = Said(
        "a round that does not suffice comes back with a changed plan",
        "一轮不够时，带着改变了的计划再来",
    )
    drawing_of = Said("The three control loops; {role} is at work", "三层控制环；正在工作：{role}")
    turn = Said("Now: {role}.", "现在：{role}。")
    turn_none = Said("Nobody is at work.", "没有角色在工作。")
    numbers = Said("Numbers of round {number}", "第 {number} 轮的数值")
    plane = Said("Decision plane", "决策平面")
    plane_how = Said(
        "Each dot is a round. Down means nearer to the goal, right means that the approach itself was wrong. "
        "Where the dot falls decides how the next round differs.",
        "每个点是一轮。越往下离目标越近；越往右，错的越是方法本身。点落在哪里，决定下一轮怎样不同。",
    )
    short_world = Said("mend, or go around", "修补或换路径")
    short_approach = Said("another approach", "换方法")
    short_success = Said("accept", "接受")
    region_world = Said("right way, world resists: mend, or take another path", "方法对，环境受阻：修补或换路径")
    region_approach = Said("wrong way: change the approach or the tools", "方法不对：换方法或换工具")
    region_success = Said("near enough: accept", "足够接近：接受")
    trajectory = Said("Over the rounds", "各轮走势")
    name_d = Said("distance from the goal", "与目标的距离")
    name_p = Said("fault of the approach", "方法之过")
    name_omega = Said("spent", "已用")
    name_grad = Said("trend of the loss", "损失走势")
    term_d = Said(
        "distance from the goal: share of criteria that are not met",
        "与目标的距离：未满足的标准所占份额",
    )
    term_p = Said(
        "implausibility: share of failures that are the approach's fault, not the world's",
        "不合理度：失败中属于方法本身（而非环境）的份额",
    )
    term_omega = Said("cost: share of replans and time that is spent", "代价：重新规划次数和时间已用的份额")
    term_l = Said("loss: all three, weighted", "损失：三者加权")
    term_grad = Said(
        "slope: change of the loss since the last round, at equal cost",
        "斜率：同等代价下，损失自上一轮以来的变化",
    )
    round = Said("Round {number}", "第 {number} 轮")
    differs = Said("Why this round differs", "这一轮为何不同")
    why_d = Said(
        "{share:.0%} of what must hold (criteria: {criteria}) does not hold yet.",
        "必须成立的（共 {criteria} 条标准）还有 {share:.0%} 没有成立。",
    )
    why_d_none = Said(
        "All that must hold does (criteria: {criteria}).",
        "必须成立的都成立了（共 {criteria} 条标准）。",
    )
    why_p_none = Said("No failure has a cause that counts.", "没有可计入的失败原因。")
    why_p = Said(
        "Failures that are the approach's own fault, and not the world's: {logical} of {total}.",
        "失败中属于方法本身而非环境的错：{total} 次中的 {logical} 次。",
    )
    why_omega = Said(
        "{share:.0%} of what it may spend is spent; at {theta:.0%} it stops.",
        "可用的已花掉 {share:.0%}；到 {theta:.0%} 就停止。",
    )
    why_first = Said("It is the first round, so there is no slope yet.", "这是第一轮，还没有斜率。")
    why_better = Said("The loss fell by {size:.2f}: this helps.", "损失下降了 {size:.2f}：有帮助。")
    why_worse = Said("The loss rose by {size:.2f}: this makes it worse.", "损失上升了 {size:.2f}：更糟了。")
    why_flat = Said(
        "The loss hardly moved ({size:+.2f}): more of the same will not help.",
        "损失几乎没动（{size:+.2f}）：照旧做下去没有用。",
    )
    blocked = Said("May not be used again", "不得再用")
    kept = Said("Kept from earlier rounds: {count}", "沿用之前的结果：{count}")
    failed_first = Said("Failed: {criterion}", "未通过：{criterion}")
    correction = Said("Corrected after attempt {number}: {what}", "第 {number} 次尝试后纠正：{what}")
    attempt = Said("attempt {number}", "第 {number} 次尝试")
    criteria = Said("Criteria", "标准")
    refused_plan = Said("The plan was refused", "计划被拒绝")
    table = Said("As a table", "以表格显示")
    who_decided = Said("Who decided what", "由谁判定")
    progress = Said("{done} of {all} subtasks", "子任务 {done}/{all}")
    spent = Said("{calls} model calls, {tokens} tokens", "模型调用 {calls} 次，{tokens} 个 token")
    spent_share = Said("{share:.0%} of what it may spend", "已用可用额的 {share:.0%}")
    # timeline
    timeline = Said("Timeline", "时间线")
    events = Said("{count} events", "{count} 个事件")
    only_important = Said("What matters", "只看要紧的")
    everything = Said("Everything", "全部")
    folded = Said("quiet events: {count}", "{count} 个次要事件")
    timeline_how = Said("Arrow keys move, Enter opens an event.", "方向键移动，回车打开事件。")
    event = Said("Event {number}", "事件 {number}")
    close = Said("Close", "关闭")
    earlier = Said("Earlier", "更早")
    later = Said("Later", "更晚")
    missing = Said("{count} messages are missing in this log.", "这份日志缺少 {count} 条消息。")
    offline = Said(
        "The connection is lost; it goes on from event {number} as soon as it is back.",
        "连接已断开；恢复后从事件 {number} 接着显示。",
    )
    # questions
    question = Said("artoo asks", "artoo 在询问")
    once = Said("Yes, once", "同意，仅此一次")
    for_task = Said("Yes, for this task", "同意，本任务内")
    no = Said("No", "不同意")
    keep = Said("Keep for later", "留待以后")
    discard = Said("Discard", "丢弃")
    source = Said("First named in: {source}", "最早出现在：{source}")
    answered_elsewhere = Said(
        "It was answered elsewhere ({via}) before: {consent}. Your answer was not used.",
        "此前已在别处（{via}）回答：{consent}。您的回答没有被采用。",
    )
    gone_out = Said("Has left this machine and does not come back: {what}", "已离开本机，无法收回：{what}")
    # difference
    difference = Said("Difference", "更改")
    apply_all = Said("Apply all", "全部应用")
    apply_chosen = Said("Apply what is chosen", "应用所选")
    nothing_waits = Said("Nothing of this task waits for your yes.", "这个任务没有等您同意的更改。")
    not_settled_yet = Said(
        "The task runs; what it changes is laid before you at its end.",
        "任务还在运行；结束时会把它的更改交给您看。",
    )
    conflicts = Said("These were changed meanwhile; they are left alone", "这些在此期间有改动，不会被动")
    undo = Said("Undo", "撤销")
    undo_how = Said(
        "Puts back {paths} paths; what was changed since is left alone and named.",
        "恢复 {paths} 个路径；之后又被改过的保持不动，并会列出。",
    )
    undone = Said("Put back", "已恢复")
    left_alone = Said("Left alone: {path}: {reason}", "保持不动：{path}：{reason}")
    waits_until = Said("until {when}", "保留到 {when}")
    cut_off = Said(
        "The task was cut off: resume it (artoo resume {task}) or discard it.",
        "任务被切断：可继续（artoo resume {task}）或丢弃。",
    )
    what_if = Said("What if", "如果")
    what_if_how = Said(
        "Other numbers, the same log: what the control law would have decided. No model is asked.",
        "换一组数值，用同一份日志：控制律会怎样决定。不会询问模型。",
    )
    recompute = Said("Recompute", "重新计算")
    then = Said("decided", "当时决定")
    would_be = Said("would be", "则会")
    nobody_knows = Said("another way: nobody knows", "走了另一条路：无人知道")
